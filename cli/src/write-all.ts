import { once } from 'node:events'
import { APIConnectionError } from '#sdk/errors.ts'

/**
 * Writes a body to standard output as it comes, at the pace of whoever reads. Throws `APIConnectionError` where it breaks off:
 * what was written then is a part.
 */
export async function writeAll(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of body) if (!process.stdout.write(chunk)) await once(process.stdout, 'drain')
  } catch (cause) {
    throw new APIConnectionError('The answer broke off: what was written is not all of it. Ask again.', { cause })
  }
}
