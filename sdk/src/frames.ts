/** A frame of a stream of server-sent events. */
export interface Frame {
  /** Undefined where the frame has none: then it does not move the place to go on at. */
  id: string | undefined
  type: string
  /** Empty where the frame only has an id. */
  data: string
}

/** Takes the text of a stream in pieces, and gives the frames that are whole (WHATWG HTML 9.2.6). */
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

/** Where the line ends and the next begins; undefined where its end has not come. Of `\r` at the end more must be known. */
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
