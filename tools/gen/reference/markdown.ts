/** A page of the reference: what it is about, where its facts are written, and its text. */
export interface Page {
  title: string
  /** One sentence; also the page's line in the table of contents. */
  intro: string
  /** The files that the page is made from. */
  sources: readonly string[]
  body: () => string
}

/** The text of a page, with a note for those who would edit it. */
export function renderPage({ title, intro, sources, body }: Page): string {
  const note = `<!-- Made by \`npm run gen\` from ${sources.join(', ')}: not to be edited here. -->`
  return `${[note, `# ${title}`, intro, body()].join('\n\n')}\n`
}

/** A heading with what stands below it. */
export function section(title: string, ...parts: string[]): string {
  return [`## ${title}`, ...parts].join('\n\n')
}

/** A table. An empty cell becomes a dash, which shows that it is empty on purpose. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

function cell(markdown: string): string {
  return markdown === '' ? '–' : markdown.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

/** Names and values, to be typed as they stand. Nothing for nothing. */
export function code(text: string | number | undefined): string {
  return text === undefined || text === '' ? '' : `\`${text}\``
}

/** Several of them, with commas between. */
export function codes(texts: Iterable<string | number>): string {
  return [...texts].map(code).join(', ')
}

/** Plain text inside of Markdown: `<name>` is not taken for HTML, nor `*` for emphasis. */
export function text(plain: string): string {
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('*', '\\*')
}

/** A number as people read it: `1,048,576`. */
export function number(value: number): string {
  return value.toLocaleString('en')
}
