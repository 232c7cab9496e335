import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from '../fault.ts'
import { byLength } from '../checker/recovery.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'

const closed_ms = 15_000
const answer_ms = 5000
const patience_ms = 30_000
const trickle_ms = 1000

/** What slow clients send at once, and then from time to time (slowhttptest's modes H and B). */
const modes = {
  'slow headers': { first: 'GET /api/v1/hello HTTP/1.1\r\nhost: cadre\r\n', later: 'x-a: b\r\n' },
  'slow body': {
    first:
      'POST /api/v1/projects HTTP/1.1\r\nhost: cadre\r\ncontent-type: application/json\r\ncontent-length: 10000\r\n\r\n{',
    later: ' ',
  },
  'no word': { first: '', later: '' },
} as const

export const slowClients: Fault = {
  id: 'F13',
  title: 'Many clients are slow, or say nothing',
  hypothesis:
    'Hundreds of connections send a header or a byte of a body a second, or nothing at all, and thousands rest between two requests. The ' +
    'service closes the slow ones within 15 s of their begin, goes on serving everybody else meanwhile without an answer 5xx, and its ' +
    'idle connections cost no response.',
  isAlone: true,
  async run(run) {
    const { short } = run
    const environment = await startEnvironment(run, { apis: 1, workers: 1, rate: 10, taskCallers: 1 })
    const { hostname, port } = new URL(environment.cluster.url()!)
    const open = (): Promise<Socket> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: hostname, port: Number(port) })
        socket.once('connect', () => resolve(socket)).once('error', reject)
      })

    const resting: Socket[] = []
    run.atEnd(async () => resting.forEach((socket) => socket.destroy()))
    for (let i = 0; i < (short ? 500 : 5000); i++) {
      const socket = await open()
      socket.on('error', () => {}).resume()
      socket.write('GET /livez HTTP/1.1\r\nhost: cadre\r\n\r\n')
      resting.push(socket)
    }
    for (let round = 0; round < (short ? 1 : 5); round++)
      for (const [name, { first, later }] of Object.entries(modes)) {
        const answers: (number | undefined)[] = []
        const spans: Span[] = []
        let isOver = false
        const watching = (async () => {
          while (!isOver) {
            const from = performance.now()
            const reply = await fetch(`http://${hostname}:${port}/api/v1/hello`, {
              headers: { 'x-api-key': environment.tenants[0]!.callers[0]!.api_key },
              signal: AbortSignal.timeout(patience_ms),
            }).catch(() => undefined)
            await reply?.arrayBuffer()
            answers.push(reply?.status)
            spans.push({ from, to: performance.now() })
            await delay(50)
          }
        })()
        const lives = await Promise.all(
          Array.from({ length: short ? 200 : 1000 }, async (): Promise<Span | undefined> => {
            const socket = await open().catch(() => undefined)
            if (!socket) return undefined
            const from = performance.now()
            socket.on('error', () => {}).resume()
            const closed = new Promise<Span>((resolve) =>
              socket.once('close', () => resolve({ from, to: performance.now() })),
            )
            if (first) socket.write(first)
            const trickle = setInterval(() => later && socket.writable && socket.write(later), trickle_ms)
            const span = await Promise.race([closed, delay(patience_ms, undefined, { ref: false })])
            clearInterval(trickle)
            socket.destroy()
            return span
          }),
        )
        isOver = true
        await watching
        const closed = lives.filter((span) => span !== undefined)
        run.say(`${name}: ${closed.length} of ${lives.length} closed; others meanwhile: ${tally(answers)}`)
        run.within(
          'R6',
          `${name}: the last of ${lives.length} is closed`,
          closed_ms,
          closed.length === lives.length ? closed.toSorted(byLength)[0] : undefined,
        )
        run.holds(
          'R6',
          `${name}: ${answers.length} others are served meanwhile`,
          answers.filter((status) => status !== 200).map((status) => String(status)),
        )
        run.within('R6', `${name}: slowest of them`, answer_ms, spans.toSorted(byLength)[0])
      }
    await holdToPromises(run, environment)
  },
}
