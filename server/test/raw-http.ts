import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from 'node:http'
import { connect } from 'node:net'

/** A response with its headers unchanged. */
export interface RawReply {
  status: number
  headers: IncomingHttpHeaders
  body: any
}

/**
 * Sends a request without any client's tidying up: the path goes out as it stands, the body as bytes, and headers in
 * whatever number.
 */
export function rawSend(
  url: string,
  options: RequestOptions & { body?: string | Buffer | undefined },
): Promise<RawReply> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const inChunks = options.headers && 'transfer-encoding' in options.headers
    const length = options.body === undefined || inChunks ? {} : { 'content-length': Buffer.byteLength(options.body) }
    const headers = Array.isArray(options.headers) ? options.headers : { ...length, ...options.headers }
    const request = httpRequest({ hostname, port, agent: false, ...options, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const json = response.headers['content-type']?.startsWith('application/json') && text !== ''
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: json ? JSON.parse(text) : text })
      })
    })
    request.on('error', reject)
    request.end(options.body)
  })
}

/** Writes bytes to the server's socket and returns everything received until the server closes the connection. */
export function exchange(url: string, bytes: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => void socket.write(bytes))
    let answer = ''
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => (answer += text))
    socket.on('close', () => resolve(answer))
    // A server that closes during a write resets the connection; the bytes received before count.
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)))
  })
}
