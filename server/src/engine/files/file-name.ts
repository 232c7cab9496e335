import { fileBounds } from '#contract/resources/files.ts'

/** The name of a file without one. */
const unnamed = 'file'

/**
 * Makes a name safe to show and to save under: no path separators or control characters, at most 255 bytes, and not
 * only dots.
 */
export function fileName(given: string | undefined): string {
  const clean = (given ?? '')
    .toWellFormed()
    .normalize('NFC')
    // Includes marks that change the direction of text, which could hide a name's extension.
    // oxlint-disable-next-line no-control-regex -- control characters are what it removes
    .replaceAll(/[\u0000-\u001f\u007f-\u009f/\\\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
    .trim()
  const cut = cutBytes(clean, fileBounds.name_bytes).trim()
  return /^\.*$/.test(cut) ? unnamed : cut
}

/** The longest beginning of a text with at most `max` bytes in UTF-8, cut between characters. */
function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text
  let bytes = 0
  let cut = ''
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > max) break
    cut += character
  }
  return cut
}
