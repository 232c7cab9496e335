/**
 * Characters that control a terminal or change the display of a line: control characters (C0 except tab and line feed, DEL,
 * C1) and those of bidirectional text.
 */
// oxlint-disable-next-line no-control-regex -- control characters are searched for
const unsafe = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g
/** The same characters, and the escape sequences for bold and dim of this program's output. */
const unsafeButOurs = new RegExp(`\\u001B\\[(?:1|2|22)m|${unsafe.source}`, 'g')

/** Replaces control characters in untrusted text. */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(unsafe, '\uFFFD')
}

/** Like `plain`, but keeps bold and dim of this program's output. */
export function plainLine(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(unsafeButOurs, (found) => (found.length > 1 ? found : '\uFFFD'))
}

/** JSON without control characters: the same value, with further characters escaped. */
export function plainJson(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replaceAll(
    unsafe,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
