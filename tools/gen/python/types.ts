import { isObject } from '#contract/core/merge-patch.ts'

type Schema = Record<string, unknown>

/** Words that are no names of members or arguments in Python. */
const reserved = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)

/** A name as Python may have it: a reserved word gets an underscore. */
export function pythonName(name: string): string {
  return reserved.has(name) ? `${name}_` : name
}

export function pascal(name: string): string {
  return name.replaceAll(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

export function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** A docstring on one line, or on several where it is long. */
export function docstring(text: string, indent: string): string {
  const safe = text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")
  const ending = safe.endsWith('"') ? `${safe} ` : safe
  const lines = wrapped(ending, 116 - indent.length)
  if (lines.length === 1) return `${indent}"""${ending}"""`
  return [`${indent}"""`, ...lines.map((line) => `${indent}${line}`), `${indent}"""`].join('\n')
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** How objects are written: as classes that answers become, or as dictionaries that callers pass. */
export type Kind = 'model' | 'param'

/**
 * Writes schemas of the contract as types of Python. Objects with a name in the contract are classes with that name; others are named
 * after where they stand. Two objects that are alike are one class.
 */
export class PythonTypes {
  readonly #kind: Kind
  /** Text of each class by its name, in the order in which they may stand. */
  readonly #classes = new Map<string, string>()
  readonly #nameOf = new Map<string, string>()

  constructor(kind: Kind) {
    this.#kind = kind
  }

  get text(): string {
    return [...this.#classes.values()].join('\n\n')
  }

  get names(): string[] {
    return [...this.#classes.keys()]
  }

  /** The type of a schema; `place` names objects that have no name. */
  write(value: unknown, place: string): string {
    if (!isObject(value)) throw new Error('A schema is an object.')
    const type = this.#plain(value, place)
    return value.nullable === true && type !== 't.Any' ? `t.Optional[${type}]` : type
  }

  #plain(schema: Schema, place: string): string {
    if (typeof schema['x-ref'] === 'string') return this.#named(schema['x-ref'])
    const name = schema['x-name']
    const { type, enum: values, anyOf, oneOf, items } = schema
    if (Array.isArray(values)) {
      const described = values
        .filter((one) => one !== null)
        .map((one) => (typeof one === 'string' ? JSON.stringify(one) : String(one)))
      return `t.Literal[${described.join(', ')}]`
    }
    for (const choices of [anyOf, oneOf]) {
      if (!Array.isArray(choices)) continue
      const types = choices.map((one, at) =>
        this.write(one, `${typeof name === 'string' ? this.#named(name) : place}${at + 1}`),
      )
      const distinct = [...new Set(types)]
      return distinct.includes('t.Any')
        ? 't.Any'
        : distinct.length === 1
          ? distinct[0]!
          : `t.Union[${distinct.join(', ')}]`
    }
    if (type === 'array')
      return `${this.#kind === 'model' ? 't.List' : 't.Sequence'}[${this.write(items, `${place}Item`)}]`
    if (type === 'object') return this.#object(schema, typeof name === 'string' ? this.#named(name) : place)
    if (type === 'integer') return 'int'
    if (type === 'number') return 'float'
    if (type === 'string') return 'str'
    if (type === 'boolean') return 'bool'
    if (type === undefined) return 't.Any'
    throw new Error(`No type is known for ${JSON.stringify(schema)}.`)
  }

  #named(name: string): string {
    return this.#kind === 'param' ? `${name.replace(/Input$/, '')}Param` : name
  }

  #object(schema: Schema, name: string): string {
    const { properties, additionalProperties } = schema
    if (!isObject(properties) || Object.keys(properties).length === 0) {
      const isTyped = isObject(additionalProperties) && Object.keys(additionalProperties).length > 0
      const values = isTyped ? this.write(additionalProperties, `${name}Value`) : 't.Any'
      return `${this.#kind === 'model' ? 't.Dict' : 't.Mapping'}[str, ${values}]`
    }
    const key = JSON.stringify({ ...schema, nullable: undefined, description: undefined })
    const known = this.#nameOf.get(key)
    if (known !== undefined) return known
    const free = this.#freeName(name, key)
    this.#nameOf.set(key, free)
    this.#classes.set(free, '')
    const text = this.#class(free, schema, properties)
    // Behind the classes that it needs, so that each can be read in its order.
    this.#classes.delete(free)
    this.#classes.set(free, text)
    return free
  }

  #freeName(name: string, key: string): string {
    if (!this.#classes.has(name)) return name
    for (let number = 2; ; number++) {
      if (number > 9) throw new Error(`Too many different objects are named ${name}: ${key}`)
      if (!this.#classes.has(`${name}${number}`)) return `${name}${number}`
    }
  }

  #class(name: string, { required, description }: Schema, properties: Schema): string {
    const needed = Array.isArray(required) ? required : []
    const members = Object.entries(properties).map(([member, schema]) => {
      const listed = /^(\w+)List$/.exec(name)?.[1]
      const isEntries = listed !== undefined && isObject(schema) && schema['type'] === 'array'
      const type = isEntries
        ? `t.List[${this.write(schema['items'], `Listed${listed}`)}]`
        : this.write(schema, `${name}${pascal(member)}`)
      const isNeeded = needed.includes(member)
      return {
        member,
        type: this.#memberType(type, isNeeded),
        text: isObject(schema) ? schema['description'] : undefined,
      }
    })
    const head = this.#kind === 'model' ? `class ${name}(Model):` : `class ${name}(t.TypedDict, total=False):`
    const lines = members.flatMap(({ member, type, text }) => [
      // What is no name in Python is an item of the object all the same.
      reserved.has(member) ? `    # ${member}: ${type}` : `    ${member}: ${type}`,
      ...(typeof text === 'string' && !reserved.has(member) ? [docstring(text, '    ')] : []),
    ])
    const doc = typeof description === 'string' ? [docstring(description, '    ')] : []
    return `${[head, ...doc, ...(lines.some((line) => !line.startsWith('    #')) ? lines : [...lines, '    pass'])].join('\n')}\n`
  }

  #memberType(type: string, isNeeded: boolean): string {
    if (this.#kind === 'param') return isNeeded ? `Required[${type}]` : type
    return isNeeded || type === 't.Any' || type.startsWith('t.Optional[') ? type : `t.Optional[${type}]`
  }
}
