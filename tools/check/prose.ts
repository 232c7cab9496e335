/** Words that make a sentence harder to read or to search for, each with what to write instead. */
const worst: [pattern: RegExp, instead: string][] = [
  [/\b(?:whoever|whomever)\b/i, 'name who it is: the caller, the owner, the process'],
  [/\b(?:somebody|nobody|anybody)\b/i, 'name who it is: a user, no caller, another process'],
  [/\b(?:is|are|was|were) told\b/i, 'say what happens: gets an event, is notified, shows'],
  [/\bof (?:its|their) own\b/i, 'say separate, new, or its'],
  [/\bby (?:itself|themselves)\b/i, 'say what triggers it, or leave it out'],
  [/\/\*\* Gives /, 'a function returns'],
]

/** The account of that name on Unix. */
const account = /[`']nobody[`']/

/** The hard words of a text, each with its line and what to write instead. */
export function hardWords(text: string): { line: number; word: string; instead: string }[] {
  return text.split('\n').flatMap((line, at) =>
    worst.flatMap(([pattern, instead]) => {
      const word = pattern.exec(line)?.[0]
      return word === undefined || account.test(line) ? [] : [{ line: at + 1, word, instead }]
    }),
  )
}
