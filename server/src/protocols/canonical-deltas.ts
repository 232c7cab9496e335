/**
 * Canonical deltas: the chunks of a streamed text depend only on the text, not on the pieces that the provider sent.
 * So a replay of the stored text has the same chunks as the live stream.
 *
 * Chunk `k`, from 0, has a target of `clamp(k / 4, 1, 64)` code points. It ends before the first white space at or
 * after the target, at the latest after `chunkMax` code points. The last one takes the rest.
 */

/** Maximum number of code points of a chunk. */
export const chunkMax = 256
const targetMax = 64
/** The target grows by one code point after so many chunks. */
const chunksPerCodePoint = 4

/** Cuts one text that arrives in pieces. */
export interface Cutter {
  /** Returns the chunks that are complete with this piece; the rest is kept. */
  push(piece: string): string[]
  /** Returns the last chunk, if any text is left. */
  end(): string[]
}

export function makeCutter(): Cutter {
  let waiting = ''
  let chunks = 0
  const cut = (): string[] => {
    const done: string[] = []
    let from = 0
    for (;;) {
      const length = chunkLength(waiting, from, targetOf(chunks))
      if (length === undefined) break
      done.push(waiting.slice(from, from + length))
      from += length
      chunks += 1
    }
    waiting = waiting.slice(from)
    return done
  }
  return {
    push(piece) {
      waiting += piece
      return cut()
    },
    end() {
      const rest = waiting
      waiting = ''
      if (rest === '') return []
      chunks += 1
      return [rest]
    },
  }
}

/** All chunks of a complete text. */
export function cutWhole(text: string): string[] {
  const cutter = makeCutter()
  return [...cutter.push(text), ...cutter.end()]
}

function targetOf(chunk: number): number {
  return Math.min(targetMax, Math.max(1, chunk / chunksPerCodePoint))
}

/** Length of the next chunk in UTF-16 code units; undefined if the text so far is too short to decide. */
function chunkLength(text: string, from: number, target: number): number | undefined {
  let points = 0
  let at = from
  while (at < text.length) {
    const point = text.codePointAt(at)!
    // The other half of a surrogate pair may follow with the next piece.
    if (at === text.length - 1 && point >= 0xd800 && point <= 0xdbff) return undefined
    if (points >= target && isSpace(point)) return at - from
    if (points === chunkMax) return at - from
    at += point > 0xffff ? 2 : 1
    points += 1
  }
  return undefined
}

function isSpace(point: number): boolean {
  return (
    point === 32 ||
    (point >= 9 && point <= 13) ||
    point === 0x85 ||
    point === 0xa0 ||
    /\s/u.test(String.fromCodePoint(point))
  )
}
