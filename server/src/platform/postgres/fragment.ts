/** Numbers of templates by their strings array, of which JavaScript makes one for each place in the code. */
const templates = new WeakMap<readonly string[], string>()
/** Numbers of texts of `raw`. */
const texts = new Map<string, string>()
/** Such texts come from source code; a further one makes a statement without a shape. */
const textsMax = 5000
let last = 0

const nextNumber = (): string => String((last += 1))

/**
 * A piece of SQL with its values, which may be fragments too. Fragments that combine the same templates in the same way have
 * the same `shape`, so their text, which takes longer to make than to send, is made once for each shape.
 */
export class Fragment {
  /** Undefined if a part has no number. */
  readonly shape: string | undefined
  readonly #strings: readonly string[]
  readonly #parts: readonly unknown[]

  constructor(strings: readonly string[], parts: readonly unknown[], number: string | undefined) {
    this.#strings = strings
    this.#parts = parts
    let shape = number
    for (let at = 0; at < parts.length; at++) {
      const part = parts[at]
      if (!(part instanceof Fragment)) continue
      shape = shape === undefined || part.shape === undefined ? undefined : `${shape}(${at}:${part.shape})`
    }
    this.shape = shape
  }

  /** The values of the placeholders `$1`, `$2` … of the text. */
  get values(): unknown[] {
    const values: unknown[] = []
    this.#addValues(values)
    return values
  }

  /** Made at each call. */
  get text(): string {
    return this.#textFrom({ count: 0 })
  }

  #addValues(values: unknown[]): void {
    for (const part of this.#parts)
      if (part instanceof Fragment) part.#addValues(values)
      else values.push(part)
  }

  #textFrom(places: { count: number }): string {
    let text = this.#strings[0]!
    this.#parts.forEach((part, at) => {
      text += part instanceof Fragment ? part.#textFrom(places) : `$${(places.count += 1)}`
      text += this.#strings[at + 1]!
    })
    return text
  }
}

/** Template tag for a piece of SQL: `fragment\`id = ${id}\``. */
export function fragment(strings: TemplateStringsArray, ...parts: unknown[]): Fragment {
  let number = templates.get(strings)
  if (number === undefined) templates.set(strings, (number = nextNumber()))
  return new Fragment(strings, parts, number)
}

/** Makes a fragment of SQL text without escaping it; never for text of a caller. */
export function raw(text: string): Fragment {
  let number = texts.get(text)
  if (number === undefined && texts.size < textsMax) texts.set(text, (number = nextNumber()))
  return new Fragment([text], [], number)
}
