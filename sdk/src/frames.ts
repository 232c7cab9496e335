/** A frame of a stream of server-sent events. */
export interface Frame {
  /** Undefined if the frame has none; it then does not change the position to resume from. */
  id: string | undefined
  type: string
  /** Empty if the frame has only an id. */
  data: string
}

/** Parses the text of a stream in pieces, and yields complete frames (WHATWG HTML §9.2.6). */
export class FrameReader {
  #rest = ''
  #frame: { id: string | undefined; type: string; data: string[] } = { id: undefined, type: '', data: [] };

  *read(piece: string): Generator<Frame> {
    const text = this.#rest + piece
    let start = 0
    for (;;) {
      const end = lineEnd(text, start)
      if (end === undefined) break
      const frame = this.#line(text.slice(start, end.at))
      start = end.next
      if (frame) yield frame
    }
    this.#rest = text.slice(start)
  }

  #line(line: string): Frame | undefined {
    if (line === '') return this.#end()
    const colon = line.indexOf(':')
    if (colon === 0) return undefined
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') this.#frame.data.push(value)
    else if (field === 'event') this.#frame.type = value
    else if (field === 'id' && !value.includes('\0')) this.#frame.id = value
    return undefined
  }

  #end(): Frame | undefined {
    const { id, type, data } = this.#frame
    this.#frame = { id: undefined, type: '', data: [] }
    if (id === undefined && data.length === 0) return undefined
    return { id, type: type || 'message', data: data.join('\n') }
  }
}

/** The end of a line and the start of the next; undefined if it is incomplete. After a final `\r` a `\n` may follow. */
function lineEnd(text: string, start: number): { at: number; next: number } | undefined {
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (char === '\n') return { at, next: at + 1 }
    if (char !== '\r') continue
    if (at + 1 === text.length) return undefined
    return { at, next: text[at + 1] === '\n' ? at + 2 : at + 1 }
  }
  return undefined
}
