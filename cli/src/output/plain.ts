/**
 * What a terminal would obey, or what would show a line otherwise than it is: control characters (C0 but tabs and ends of
 * lines, DEL, C1) and those that turn the direction of text.
 */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unsafe = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g
/** The same, and the two ways in which output of our own is set off from the rest. */
const unsafeButOurs = new RegExp(`\\u001B\\[(?:1|2|22)m|${unsafe.source}`, 'g')

/** Text of others without what a terminal would obey: a replacement character stands in its place. */
export function plain(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(unsafe, '\uFFFD')
}

/** The same for a whole line, which may have bold and dim parts of our own. */
export function plainLine(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(unsafeButOurs, (found) => (found.length > 1 ? found : '\uFFFD'))
}

/** JSON of which a terminal obeys nothing either: the same value, with escapes where `JSON.stringify` has none. */
export function plainJson(value: unknown, indent?: number): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replaceAll(
    unsafe,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
