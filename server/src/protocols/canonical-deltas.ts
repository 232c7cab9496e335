/**
 * Canonical deltas: where a text is cut into the pieces that a stream sends depends on the text alone, so that a replay cuts
 * a stored text exactly where the live stream cut it, whatever pieces its provider sent.
 *
 * Chunk `k`, from 0, has a target of `clamp(k / 4, 1, 64)` code points. It ends before the first white space at or after the
 * target, at the latest after `chunkMax` code points. The last one takes the rest.
 */

/** Code points of one chunk at most. */
export const chunkMax = 256
const targetMax = 64
/** A chunk grows by one code point of its target with every so many chunks. */
const chunksPerCodePoint = 4

/** Cuts one text that comes in pieces. */
export interface Cutter {
  /** The chunks that are certain with this piece; the rest waits for more. */
  push(piece: string): string[]
  /** The last chunk; none where nothing waits. */
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

/** All chunks of a text that is known whole. */
export function cutWhole(text: string): string[] {
  const cutter = makeCutter()
  return [...cutter.push(text), ...cutter.end()]
}

function targetOf(chunk: number): number {
  return Math.min(targetMax, Math.max(1, chunk / chunksPerCodePoint))
}

/** How many units the next chunk has; undefined while the text is not long enough to tell. */
function chunkLength(text: string, from: number, target: number): number | undefined {
  let points = 0
  let at = from
  while (at < text.length) {
    const point = text.codePointAt(at)!
    // Half of a pair at the end may become another character with the next piece.
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
