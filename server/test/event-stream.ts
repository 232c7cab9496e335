import { createParser, type EventSourceMessage } from 'eventsource-parser'

/** A frame of a stream as its reader sees it. */
export interface Frame {
  id: string | undefined
  type: string
  /** The result of `JSON.parse`. */
  data: any
}

export interface ReadingOptions {
  headers?: Record<string, string> | undefined
  /** Called with each frame on arrival. */
  onFrame?: (frame: Frame) => void
  signal?: AbortSignal | undefined
}

/** Reads a stream of server-sent events to its end, or until it is aborted or cut off. */
export async function readStream(url: string, options: ReadingOptions = {}): Promise<Frame[]> {
  const { headers = {}, onFrame = () => {}, signal } = options
  const frames: Frame[] = []
  const parser = createParser({
    onEvent: ({ id, event, data }: EventSourceMessage) => {
      const frame = { id, type: event ?? '', data: JSON.parse(data) }
      frames.push(frame)
      onFrame(frame)
    },
  })
  try {
    const response = await fetch(url, { headers, signal: signal ?? null })
    if (response.status >= 300) throw new Error(`${response.status}: ${await response.text()}`)
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) parser.feed(decoder.decode(chunk, { stream: true }))
  } catch (error) {
    if (!signal?.aborted) throw error
  }
  return frames
}
