import { createHmac, randomBytes } from 'node:crypto'
import { verifyWebhook } from '../sdk/src/webhooks.ts'
import { formTokens } from '../server/src/http/pages/form-token.ts'
import { hashOf } from '../server/src/platform/crypto/hash-of.ts'
import { makeSecrets } from '../server/src/platform/crypto/secrets.ts'
import { isSecretOf } from '../server/src/resources/oauth/provider/provider.ts'
import { makeKey, makePerson } from '../server/test/actors.ts'
import { startTestService } from '../server/test/harness.ts'
import { readOptions } from './parts/options.ts'

/**
 * Whether the time of an answer tells how much of a guess is right (dudect, Reparaz and others 2017): guesses whose first half is right, and
 * guesses that are wrong throughout, are tried in random turns, and Welch's t-test compares their times. From |t| = 4.5 on they differ; then it ends with 1. So it does where it does not find the comparison that leaks by design.
 *
 *     node bench/timing.ts --count 100000
 *
 * Keys and ids go over HTTP and the database, one of 25 as many. A busy machine makes noise, which hides differences and makes none.
 */
const values = readOptions({ count: { type: 'string', default: '100000' } })
const count = Number(values.count)
const limit = 4.5
/** The slowest share of all tries is left out: it measures the machine. */
const kept = 0.9
/** Guesses that are made at once; the first so many are not counted. */
const batch = 500

interface Target {
  name: string
  count: number
  /** Whether it should be found to leak. */
  leaks?: boolean
  almost: () => string
  wrong: () => string
  attempt: (guess: string) => unknown
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex')
/** The first half of what is right and the second of what is wrong: another text each time, as those that are wrong throughout are. */
const nearly = (right: string, wrong: string) =>
  right.slice(0, Math.floor(right.length / 2)) + wrong.slice(Math.floor(right.length / 2))

const service = await startTestService({ CADRE_RATE_LIMITS: 'off' })
try {
  const targets = [leak(), clientSecret(), formToken(), webhook(), keyLookup(), await foreignProject()]
  console.log('| Comparison | tries | t |\n|---|---|---|')
  for (const target of targets) {
    const t = await welch(target)
    const isLeaking = Math.abs(t) >= limit
    if (isLeaking !== (target.leaks ?? false)) process.exitCode = 1
    console.log(`| ${target.name} | ${target.count} | ${t.toFixed(2)}${isLeaking ? ' (differs)' : ''} |`)
  }
} finally {
  await service.stop()
}

/** Shows that the test finds what there is to find. */
function leak(): Target {
  const secret = hex(32)
  const attempt = (guess: string): boolean => {
    for (let at = 0; at < secret.length; at++) if (guess[at] !== secret[at]) return false
    return true
  }
  const name = 'letter by letter, as none of ours is'
  return { name, count, leaks: true, almost: () => nearly(secret, hex(32)), wrong: () => hex(32), attempt }
}

function clientSecret(): Target {
  const secret = hex(32)
  const stored = hashOf(secret).toString('hex')
  const attempt = (guess: string) => isSecretOf(stored, guess)
  return { name: 'secret of an app', count, almost: () => nearly(secret, hex(32)), wrong: () => hex(32), attempt }
}

function formToken(): Target {
  const tokens = formTokens(makeSecrets(hex(32)))
  const token = tokens.issue('login', 'browser')
  const attempt = (guess: string) => tokens.verify(guess, 'login', 'browser')
  const almost = () => nearly(token, wrong())
  const wrong = () => randomBytes(32).toString('base64url')
  return { name: 'token of a form', count, almost, wrong, attempt }
}

function webhook(): Target {
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  const timestamp = String(Math.floor(Date.now() / 1000))
  const mac = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(`m.${timestamp}.{}`)
    .digest()
  const attempt = (guess: string) =>
    verifyWebhook(
      '{}',
      { 'webhook-id': 'm', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${guess}` },
      secret,
      { tolerance_seconds: 86_400 },
    ).catch(() => false)
  const wrong = () => randomBytes(32).toString('base64')
  return {
    name: 'signature of a webhook',
    count: count / 2,
    almost: () => nearly(mac.toString('base64'), wrong()),
    wrong,
    attempt,
  }
}

/** Over HTTP and the database. */
function overHttp(name: string, almost: () => string, wrong: () => string, attempt: Target['attempt']): Target {
  return { name: `${name}, over HTTP`, count: Math.ceil(count / 25), almost, wrong, attempt }
}

function keyLookup(): Target {
  const wrong = () => `cadre_${hex(16)}`
  const attempt = (key: string) => service.send('GET', '/api/v1/projects', { key })
  return overHttp('wrong API keys, half right or not', () => nearly(service.owner.api_key, wrong()), wrong, attempt)
}

/** Whether what belongs to others is answered in another time than what is not there. */
async function foreignProject(): Promise<Target> {
  const { body: project } = await service.send('POST', '/api/v1/projects', { body: { name: 'of-others' } })
  const stranger = await makePerson(service)
  const { key } = await makeKey(service, stranger, ['read'])
  const attempt = (id: string) => service.send('GET', `/api/v1/projects/${id}`, { key })
  return overHttp(
    'projects of others, and none',
    () => String(project.id),
    () => '9',
    attempt,
  )
}

async function welch(target: Target): Promise<number> {
  const times: { isAlmost: boolean; ns: number }[] = []
  for (let n = -batch; n < target.count; n += batch) {
    // All are made, and in the same way, before the time runs: making one leaves its marks in the caches of the processor.
    const guesses = Array.from({ length: batch }, () => {
      const isAlmost = randomBytes(1)[0]! < 128
      // What was made last is nearer to the processor: which of the two that is, is by chance.
      const isFirst = randomBytes(1)[0]! < 128
      const make = (almost: boolean) => ({
        almost,
        text: Buffer.from(almost ? target.almost() : target.wrong()).toString(),
      })
      const both = [make(isFirst), make(!isFirst)]
      return { isAlmost, guess: both.find(({ almost }) => almost === isAlmost)!.text }
    })
    for (const { isAlmost, guess } of guesses) {
      const began = process.hrtime.bigint()
      const ended = target.attempt(guess)
      if (ended instanceof Promise) await ended
      if (n >= 0) times.push({ isAlmost, ns: Number(process.hrtime.bigint() - began) })
    }
  }
  const longest = times.map(({ ns }) => ns).toSorted((a, b) => a - b)[Math.floor(times.length * kept)]!
  const [a, b] = [true, false].map((which) =>
    moments(times.filter(({ isAlmost, ns }) => isAlmost === which && ns <= longest).map(({ ns }) => ns)),
  ) as [Moments, Moments]
  return (a.mean - b.mean) / Math.sqrt(a.variance / a.n + b.variance / b.n)
}

interface Moments {
  n: number
  mean: number
  variance: number
}

function moments(all: readonly number[]): Moments {
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length
  return { n: all.length, mean, variance: all.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (all.length - 1) }
}
