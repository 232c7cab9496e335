import type { ServerResponse } from 'node:http'
import type { ProjectFeed } from './project-stream-feed.ts'
import { comment_ms, drain_ms, retry_ms, waitingBytesMax } from './streams.ts'

export interface ProjectStreamOptions {
  feed: ProjectFeed
  project_id: number
  /** The reader's `Last-Event-ID` header, unchecked. */
  last_event_id: string | undefined
  /** Response headers besides those of a stream. */
  headers: Record<string, string | number | string[]>
}

/**
 * Streams the events of a project to one reader: first `project.snapshot`, then what it missed since its
 * `Last-Event-ID`, then live events. Each event is sent once, and those of a task in order, from all processes. Takes
 * over `response` and resolves when the stream has ended for any reason.
 *
 * A reader that does not read is disconnected when a megabyte is buffered for it. It can reconnect and get the rest.
 */
export async function streamProject(
  response: ServerResponse,
  { feed, project_id, last_event_id, headers }: ProjectStreamOptions,
): Promise<void> {
  const ended = Promise.withResolvers<void>()
  response.on('close', () => ended.resolve())
  // Writes after the reader has left are dropped on purpose.
  response.on('error', () => {})
  // The reader left before the stream started, and `close` is not emitted again.
  if (response.destroyed) return
  const write = (text: string | Buffer): void => {
    if (response.writableEnded) return
    // The bytes already waiting count, not the new ones: the news of one look may exceed the bound.
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
    // A reader that does not read would never receive the end.
    setTimeout(() => response.destroy(), drain_ms).unref()
    ended.resolve()
  }
  const leave = feed.watch(project_id, last_event_id, { frames: write, close })
  await ended.promise
  clearInterval(comments)
  leave()
}
