/** An id: of a decision about the API, of a promise, of a fault, or the number of a page in docs/decisions. */
const id = /[DOSPRF]\d{1,3}|\d{4}/.source

/** Definitions: a line of docs/decisions/api.md that begins with an id in bold. */
const definition = /^- \*\*([DOSPRF]\d{1,3})\*\* \S/gm

/** `decision D48`, `decisions D34, D36 and D94`, `decisions D76–D84`, `promise R8`, `fault F12`. */
const citation = new RegExp(
  String.raw`\b(?:decision|promise|fault|rule)s?[ \n*/]+(${id})((?:(?:, (?:and )?| and |–| or )(?:${id}))*)`,
  'gi',
)

/** Ids of decisions are rare enough words to be found anywhere. */
const bare = /\bD\d{1,3}\b/g

/** Sections of documents that are not in the repository. */
const foreign =
  /\bdecisions? \d\.\d[\d.]*|\((?:tasks|engine|reliability|plan|style|conventions) \d[\d., and]*\)|\breliability (?:\d|[RF]\d)/g

/** The ids that a text defines. */
export function definedIds(page: string): Set<string> {
  return new Set([...page.matchAll(definition)].map(([, name]) => name!))
}

/** The ids that a text cites, and citations that cannot be followed, with their lines. */
export function citationsIn(text: string): {
  cited: { id: string; line: number }[]
  foreign: { text: string; line: number }[]
} {
  const lineOf = (at: number): number => text.slice(0, at).split('\n').length
  const named = [...text.matchAll(citation)].flatMap(({ 1: first, 2: rest, index }) =>
    expand(`${first}${rest ?? ''}`).map((name) => ({ id: name, line: lineOf(index) })),
  )
  const loose = [...text.matchAll(bare)].map(({ 0: name, index }) => ({ id: name, line: lineOf(index) }))
  return {
    cited: [...named, ...loose],
    foreign: [...text.matchAll(foreign)].map(({ 0: found, index }) => ({ text: found, line: lineOf(index) })),
  }
}

/** The ids of a list; `D76–D84` is all of them. */
function expand(list: string): string[] {
  return list.split(/, (?:and )?| and | or /).flatMap((part) => {
    const [from = '', to] = part.split('–')
    if (to === undefined) return [from]
    const [letter = '', first, last] = [from[0], Number(from.slice(1)), Number(to.replace(/^\D/, ''))]
    return Array.from({ length: Math.max(0, last - first) + 1 }, (_, nth) => `${letter}${first + nth}`)
  })
}
