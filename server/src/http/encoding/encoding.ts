import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The first of these encodings that a client accepts (RFC 9110 §12.5.3); undefined if it accepts none of them. */
export function acceptedEncoding<Name extends string>(
  { headers }: Pick<FastifyRequest, 'headers'>,
  names: readonly Name[],
): Name | undefined {
  const accepted = new Map((headers['accept-encoding']?.toString() ?? '').split(',').map(readWeight))
  return names.find((name) => accepted.get(name) ?? accepted.get('*'))
}

/** An encoding, in lower case, and whether its weight allows it: `gzip;q=0` does not. */
function readWeight(text: string): [encoding: string, isAccepted: boolean] {
  const [encoding = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  return [encoding, weight === undefined || Number(weight.slice(2)) > 0]
}

/** Sends the same large text to many clients: compressed once, for clients that accept it. */
export function compressedOnce(): (
  request: FastifyRequest,
  reply: FastifyReply,
  body: string | Buffer,
) => Promise<string | Buffer> {
  let last: { body: string | Buffer; zipped: Promise<Buffer> } | undefined
  return async (request, reply, body) => {
    const others = reply.getHeader('vary')
    reply.header('vary', [...(others === undefined ? [] : [others]), 'accept-encoding'].join(', '))
    if (acceptedEncoding(request, ['gzip']) === undefined) return body
    if (last?.body !== body) last = { body, zipped: promisify(gzip)(body) }
    const zipped = await last.zipped
    reply.header('content-encoding', 'gzip')
    return zipped
  }
}
