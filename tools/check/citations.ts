/** A file whose citations are checked. */
export interface Source {
  /** Path in the repository, with slashes. */
  file: string
  text: string
}

/** What citations may name. */
export interface Definitions {
  /** Ids with a line in `docs/decisions/api.md`: `D48`, `O1`, `S2`, `P3`, `R8`, `F12`. */
  ids: Set<string>
  /** Numbers of the files in `docs/decisions`: `0019`. */
  files: Set<string>
}

/** The word before an id, by the id's letter. */
const wordOf: Record<string, string> = {
  D: 'decision',
  O: 'decision',
  S: 'decision',
  P: 'promise',
  R: 'promise',
  F: 'fault',
}

/** Migrations are never edited, so the form of their citations is not judged; their ids must exist. */
const anyForm = /(^|\/)migrations\//

/** Where the ids of promises and faults stand alone: in code, tables and command lines about them. */
const idsAlone = /^(e2e\/faults\/|tools\/faults\.ts$|docs\/faults\.md$)/

/** Between a word and its id: a space, or the end of a line and the comment sign of the next. */
const gap = String.raw`(?:[ \t]+|[ \t]*\r?\n[ \t]*(?:\*|\/\/|--|#)?[ \t]*)`
const id = String.raw`[DOSPRF]\d+(?:[a-z]|(?:\.\d+)+)?\b`
const separator = `(?:,?${gap}(?:and|or)${gap}|,${gap}|[–-])`
const item = String.raw`(?:${id}|0\d{3}\b|\d+(?:\.\d+)+)`
/** A word and what it cites: `decisions D20, D23`, `decision 0019`, and what was never defined: `decisions 1.4`. */
const citation = new RegExp(
  String.raw`(?<![\w-])(decision|promise|fault|rule)s?${gap}((?:${item}|\d+\b)(?:${separator}${item})*)`,
  'gi',
)
/** Sections of documents outside the repository. */
const elsewhere = new RegExp(
  String.raw`(?<![\w-])(?:(?:tasks|reliability|engine|conventions|interop|libraries)${gap}(?:\d+(?:\.\d+)*|[DOSPRF]\d+)\b|(?:decision${gap})?tables?${gap}\d+\.\d+)`,
  'gi',
)
/**
 * An id, and the end of the range that it begins. Letters that other texts use before numbers too (`S256`) are ids only
 * after their word.
 */
const token = /(?<![%#\w])([DRF])(\d+)(?:[–-]\1(\d+))?(?![\w])/g

/** Reads what `api.md` and the names of the files beside it define. */
export function readDefinitions(list: string, names: readonly string[]): Definitions {
  return {
    ids: new Set([...list.matchAll(/^- \*\*([DOSPRF]\d+)\*\* \S/gm)].map(([, name = '']) => name)),
    files: new Set(names.flatMap((name) => /^(\d{4})-.*\.md$/.exec(name)?.[1] ?? [])),
  }
}

/**
 * What is wrong with the citations of these files, one line each, and how many there are. Every decision must be cited;
 * promises and faults are kept whole, cited or not.
 */
export function judgeCitations(
  sources: readonly Source[],
  { ids, files }: Definitions,
): { errors: string[]; citations: number } {
  const errors: string[] = []
  const cited = new Set<string>()
  let citations = 0
  for (const { file, text } of sources) {
    const complain = (at: number, what: string): void => {
      errors.push(`${file}:${text.slice(0, at).split('\n').length}: ${what}`)
    }
    const cite = (at: number, name: string): void => {
      citations += 1
      cited.add(name)
      if (!ids.has(name)) complain(at, `${name} is not in docs/decisions/api.md.`)
    }
    const isJudged = !anyForm.test(file)
    const inForm = readForms(text, files, isJudged ? complain : () => {})
    for (const [at, name] of inForm) if (/^[OSP]/.test(name)) cite(at, name)
    for (const match of text.matchAll(token)) {
      const [written, letter = '', first, last = first] = match
      for (let number = Number(first); number <= Number(last); number += 1) cite(match.index, `${letter}${number}`)
      const mayStandAlone = letter !== 'D' && (idsAlone.test(file) || text.slice(0, match.index).endsWith('-- '))
      if (isJudged && !mayStandAlone && !inForm.has(match.index))
        complain(match.index, `Write "${wordOf[letter]} ${written}", not "${written}" alone.`)
    }
  }
  for (const name of ids)
    if (wordOf[name.charAt(0)] === 'decision' && !cited.has(name))
      errors.push(`docs/decisions/api.md: Nothing cites ${name}. Remove its line.`)
  return { errors, citations }
}

/** Judges the form of all citations of a text; gives the ids that stand after the right word, by their places. */
function readForms(
  text: string,
  files: Set<string>,
  complain: (at: number, what: string) => void,
): Map<number, string> {
  const places = new Map<number, string>()
  for (const match of text.matchAll(citation)) {
    const [whole, word = '', list = ''] = match
    const from = match.index + whole.length - list.length
    for (const part of list.matchAll(/[A-Z]?\d[\w.]*(?<!\.)/gi)) {
      const name = part[0]
      const at = from + part.index
      if (wordOf[name.charAt(0)] === word.toLowerCase() && /^[A-Z]\d+$/.test(name)) places.set(at, name)
      else if (/^0\d{3}$/.test(name) && word.toLowerCase() === 'decision') {
        if (!files.has(name)) complain(at, `docs/decisions has no file ${name}.`)
      } else complain(at, `"${word} ${name}" is no id of docs/decisions.`)
    }
  }
  for (const match of text.matchAll(elsewhere))
    complain(match.index, `"${match[0]}" cites a document outside the repository.`)
  return places
}
