import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A store of the S3 protocol in memory that verifies signatures (AWS Signature Version 4) and lists incomplete uploads. */
export interface StrictS3 {
  endpoint: string
  objects: Map<string, Buffer>
  /** Incomplete uploads in parts: their keys, by identifier. */
  uploads: Map<string, string>
  /** Requests whose signature was wrong. */
  refused: number
  close(): Promise<void>
}

export async function startStrictS3(keys: { id: string; secret: string }): Promise<StrictS3> {
  const parts = new Map<string, Map<number, Buffer>>()
  const store: Omit<StrictS3, 'endpoint' | 'close'> = { objects: new Map(), uploads: new Map(), refused: 0 }
  const server: Server = createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
      const fail = (status: number, code: string): void => {
        response.writeHead(status, { 'content-type': 'application/xml' })
        response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`)
      }
      if (!isSigned(request, body, keys)) {
        store.refused += 1
        return fail(403, 'SignatureDoesNotMatch')
      }
      const { pathname, searchParams } = new URL(request.url!, 'http://s3')
      const key = pathname.split('/').slice(2).join('/')
      const id = searchParams.get('uploadId')
      const xml = (text: string): void => void response.writeHead(200, { 'content-type': 'application/xml' }).end(text)
      switch (`${request.method} ${searchParams.has('uploads') ? 'uploads' : id === null ? 'object' : 'upload'}`) {
        case 'POST uploads': {
          const made = `upload-${store.uploads.size + parts.size + 1}`
          store.uploads.set(made, key)
          parts.set(made, new Map())
          return xml(`<InitiateMultipartUploadResult><UploadId>${made}</UploadId></InitiateMultipartUploadResult>`)
        }
        case 'GET uploads': {
          const prefix = searchParams.get('prefix') ?? ''
          const found = [...store.uploads].filter(([, of]) => of.startsWith(prefix))
          const rows = found.map(([one, of]) => `<Upload><Key>${of}</Key><UploadId>${one}</UploadId></Upload>`)
          return xml(`<ListMultipartUploadsResult>${rows.join('')}</ListMultipartUploadsResult>`)
        }
        case 'PUT upload':
          parts.get(id!)?.set(Number(searchParams.get('partNumber')), body)
          return void response.writeHead(200, { etag: `"${createHash('md5').update(body).digest('hex')}"` }).end()
        case 'POST upload': {
          const all = [...parts.get(id!)!].toSorted(([one], [other]) => one - other).map(([, bytes]) => bytes)
          store.objects.set(key, Buffer.concat(all))
          store.uploads.delete(id!)
          return xml('<CompleteMultipartUploadResult/>')
        }
        case 'DELETE upload':
          store.uploads.delete(id!)
          return void response.writeHead(204).end()
        case 'PUT object':
          store.objects.set(key, body)
          return void response.writeHead(200).end()
        case 'DELETE object':
          store.objects.delete(key)
          return void response.writeHead(204).end()
        default:
          return fail(501, 'NotImplemented')
      }
    })()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(store, {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

/** Verifies a request as the service does that it stands for. */
function isSigned(
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  keys: { id: string; secret: string },
): boolean {
  const said = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? '',
  )
  const digest = headers['x-amz-content-sha256']
  if (!said || said[1] !== keys.id || typeof digest !== 'string') return false
  const hash = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')
  if (digest !== 'UNSIGNED-PAYLOAD' && digest !== hash(body)) return false
  const [path = '', search = ''] = url!.split('?')
  const query = search
    .split('&')
    .filter(Boolean)
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
    .toSorted()
    .join('&')
  const names = said[3]!.split(';')
  const lines = names.map((name) => `${name}:${String(headers[name] ?? '').trim()}\n`).join('')
  const canonical = [method, path, query, lines, said[3], digest].join('\n')
  const scope = said[2]!
  const [date = '', region = '', service = ''] = scope.split('/')
  const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
  const key = hmac(hmac(hmac(hmac(`AWS4${keys.secret}`, date), region), service), 'aws4_request')
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hash(canonical)].join('\n')
  return hmac(key, text).toString('hex') === said[4]
}
