import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** Cost of one hash: KiB of memory, passes over it, and parallelism. */
export interface PasswordCost {
  memory_kib: number
  passes: number
  concurrency: number
}

/** OWASP's minimum for argon2id; measured 17–26 ms per hash (decision S1). */
export const passwordCost: PasswordCost = { memory_kib: 19_456, passes: 2, concurrency: 1 }

const salt_bytes = 16
const tag_bytes = 32

/** Concurrent hashes: bounds the memory that callers can use, 76 MiB at the default cost. */
const hashesMax = 4
/** How long a hash may wait until it starts. */
const wait_ms = 2000

/** A hash could not start within two seconds; answered with 503. */
export class PasswordsBusy extends Error {
  constructor() {
    super('too many passwords are being checked at the same time')
    this.name = 'PasswordsBusy'
  }
}

/** The result of a password check. */
export interface PasswordCheck {
  correct: boolean
  /** The stored hash has another cost; the caller should store a new one. */
  outdated: boolean
}

/** Hashes and checks passwords, a few at a time. */
export interface Passwords {
  /** A PHC string of argon2id: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`. Throws `PasswordsBusy`. */
  hash(password: string): Promise<string>
  /**
   * Checks a password against a stored hash. Without one (unknown e-mail address, account without a password) a hash is
   * computed as well, so that the duration does not reveal it. Throws `PasswordsBusy`.
   */
  check(password: string, stored: string | null | undefined): Promise<PasswordCheck>
}

/** Makes the hasher. Passwords are normalized to NFKC, so that the same text typed on another keyboard is equal. */
export function createPasswords(cost: PasswordCost = passwordCost): Passwords {
  const turns = createTurns(hashesMax, wait_ms)
  const dummy: PhcHash = { cost, salt: Buffer.alloc(salt_bytes), tag: Buffer.alloc(tag_bytes) }

  const tagOf = (password: string, { cost, salt, tag }: PhcHash): Promise<Buffer> =>
    turns(() =>
      derive('argon2id', {
        message: password.normalize('NFKC'),
        nonce: salt,
        parallelism: cost.concurrency,
        tagLength: tag.length,
        memory: cost.memory_kib,
        passes: cost.passes,
      }),
    )

  return {
    async hash(password) {
      const empty: PhcHash = { cost, salt: randomBytes(salt_bytes), tag: Buffer.alloc(tag_bytes) }
      return formatHash({ ...empty, tag: await tagOf(password, empty) })
    },
    async check(password, stored) {
      const known = stored ? parseHash(stored) : undefined
      const wanted = known ?? dummy
      const same = timingSafeEqual(await tagOf(password, wanted), wanted.tag)
      const outdated = known !== undefined && !sameCost(known.cost, cost)
      return { correct: same && known !== undefined, outdated }
    },
  }
}

interface PhcHash {
  cost: PasswordCost
  salt: Buffer
  tag: Buffer
}

function sameCost(a: PasswordCost, b: PasswordCost): boolean {
  return a.memory_kib === b.memory_kib && a.passes === b.passes && a.concurrency === b.concurrency
}

/** PHC strings use base64 without padding. */
function formatHash({ cost, salt, tag }: PhcHash): string {
  const text = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${cost.memory_kib},t=${cost.passes},p=${cost.concurrency}$${text(salt)}$${text(tag)}`
}

const phc = /^\$argon2id\$v=19\$m=(\d{1,8}),t=(\d{1,4}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{22,86})$/

/** Throws if a stored hash is not argon2id: that is an internal error, not a wrong password. */
function parseHash(text: string): PhcHash {
  const [, memory, passes, concurrency, salt, tag] = phc.exec(text) ?? []
  if (salt === undefined || tag === undefined) throw new Error('a stored password hash is not an argon2id PHC string')
  return {
    cost: { memory_kib: Number(memory), passes: Number(passes), concurrency: Number(concurrency) },
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

/** Runs at most `max` works at a time, in order of arrival; one that waits longer than `wait_ms` fails. */
function createTurns(max: number, wait_ms: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0
  const waiting = new Set<() => void>()

  const turn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer)
        waiting.delete(begin)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(begin)
        reject(new PasswordsBusy())
      }, wait_ms)
      waiting.add(begin)
    })

  return async (work) => {
    // A finished work passes its place to the next one, so `running` only falls when the queue is empty.
    if (running >= max) await turn()
    else running += 1
    try {
      return await work()
    } finally {
      const [next] = waiting
      if (next) next()
      else running -= 1
    }
  }
}
