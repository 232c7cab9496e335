/** How long the browser has to begin reading a file. */
const kept_ms = 10_000

/** Offers a file that is made here for download, without asking any server. Text is encoded as UTF-8. */
export function saveFile(name: string, type: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }))
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), kept_ms)
}
