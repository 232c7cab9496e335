import { fileBounds } from '#contract/resources/files.ts'

/** What a file without a name is called. */
const unnamed = 'file'

/**
 * A name that is safe to show and to save under: without path separators and control characters, at most 255 bytes, and never
 * nothing but dots.
 */
export function fileName(given: string | undefined): string {
  const clean = (given ?? '')
    .toWellFormed()
    .normalize('NFC')
    // Also the marks that turn the direction of text, which would hide what a name ends in.
    // oxlint-disable-next-line no-control-regex -- it is what is taken out
    .replaceAll(/[\u0000-\u001f\u007f-\u009f/\\\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
    .trim()
  const cut = cutBytes(clean, fileBounds.name_bytes).trim()
  return /^\.*$/.test(cut) ? unnamed : cut
}

/** The beginning of a text that has so many bytes at most, as UTF-8, cut between characters. */
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
