import type { ServerResponse } from 'node:http'
import type { ProjectFeed } from './project-stream-feed.ts'
import { comment_ms, drain_ms, retry_ms, waitingBytesMax } from './streams.ts'

export interface ProjectStreamOptions {
  feed: ProjectFeed
  project_id: number
  /** What the reader sent as its `Last-Event-ID`, whatever it is. */
  last_event_id: string | undefined
  /** Headers of the answer beside those of a stream. */
  headers: Record<string, string | number | string[]>
}

/**
 * Streams the events of a project to one reader: first `project.snapshot`, then what it missed since its
 * `Last-Event-ID`, then live events. Each event comes once, and those of a task in order, from all processes. Takes
 * over `response` and resolves when the stream has ended for any reason.
 * A reader that does not read is disconnected when a megabyte is buffered for it. It reconnects and gets the rest.
 */
export async function streamProject(
  response: ServerResponse,
  { feed, project_id, last_event_id, headers }: ProjectStreamOptions,
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  response.on('close', () => ended.resolve())
  // What is written after the reader has gone is lost on purpose.
  response.on('error', () => {})
  // It left before the stream began, and that event is not sent again.
  if (response.destroyed) return
  const write = (text: string | Buffer): void => {
    if (response.writableEnded) return
    // What is waiting counts, not what comes: all that one look tells may be more than the bound.
    if (response.writableLength > waitingBytesMax) response.destroy()
    else response.write(text)
  }
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  if (response.req.method === 'HEAD') return void response.end()
  write(`retry: ${retry_ms}\n\n`)
  const comments = setInterval(() => write(':\n\n'), comment_ms)
  const close = (): void => {
    response.end()
    // A reader that does not read would never have the end.
    setTimeout(() => response.destroy(), drain_ms).unref()
    ended.resolve()
  }
  const leave = feed.watch(project_id, last_event_id, { frames: write, close })
  await ended.promise
  clearInterval(comments)
  leave()
}
