/** A piece of HTML that is safe to send: made by `html`, which escapes everything else that is put into it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** What may stand in a template: pieces of HTML, texts to be escaped, lists of both; false and undefined are nothing. */
export type HtmlValue = Html | string | number | false | null | undefined | readonly HtmlValue[]

/**
 * HTML as a template tag. Every value is escaped for text and for attributes in quotes, so attributes are always
 * written with quotes; only what `html` itself made goes through as it is.
 */
export function html(texts: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return new Html(texts.map((text, i) => text + render(values[i])).join(''))
}

function render(value: HtmlValue): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(render).join('')
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value))
  return ''
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => entities[sign] ?? '')
}
