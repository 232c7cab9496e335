/** HTML that is safe to send: only `html`, which escapes its values, or code with trusted text makes it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A value in a template: HTML, text to escape, or a list of both; false, null and undefined render nothing. */
export type HtmlValue = Html | string | number | false | null | undefined | readonly HtmlValue[]

/**
 * Template tag for HTML. Every value except `Html` is escaped, for text and for quoted attributes, so attributes must
 * have quotes.
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
