/** Reads at most `bytesMax` bytes of a body; `truncated` if it had more. */
export async function readUpTo(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<{ read: Buffer; truncated: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytesMax) return { read: Buffer.concat(chunks).subarray(0, bytesMax), truncated: true }
  }
  return { read: Buffer.concat(chunks), truncated: false }
}
