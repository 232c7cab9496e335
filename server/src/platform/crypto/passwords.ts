import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** What one hash costs: KiB of memory, passes over it, lanes. */
export interface PasswordCost {
  memory_kib: number
  passes: number
  concurrency: number
}

/** OWASP's floor for argon2id, measured at 17–26 ms a hash (decision S1). Only ever configured upward. */
export const passwordCost: PasswordCost = { memory_kib: 19_456, passes: 2, concurrency: 1 }

const salt_bytes = 16
const tag_bytes = 32

/** Hashes at once, 76 MiB at the default cost: what a caller can make us spend has an end. */
const hashesMax = 4
/** How long a hash may wait for its turn. */
const wait_ms = 2000

/** Thrown when no hash could begin within two seconds; the caller answers 503. */
export class PasswordsBusy extends Error {
  constructor() {
    super('too many passwords are being checked at once')
    this.name = 'PasswordsBusy'
  }
}

/** What a check found out. */
export interface PasswordCheck {
  correct: boolean
  /** The stored hash was made at another cost: store a new one, now that the password is at hand. */
  outdated: boolean
}

/** Hashes passwords and checks them against hashes, a few at a time. */
export interface Passwords {
  /** A PHC string of argon2id: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`. Throws `PasswordsBusy`. */
  hash(password: string): Promise<string>
  /**
   * Checks a password against a stored hash. Where there is none (unknown e-mail address, account without a password)
   * a hash is computed all the same, so that time does not tell. Throws `PasswordsBusy`.
   */
  check(password: string, stored: string | null | undefined): Promise<PasswordCheck>
}

/** Passwords are hashed in their NFKC form: the same text typed on another keyboard is the same password. */
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

/** Throws for text that is no argon2id hash: an unreadable stored hash is an internal error, not a wrong password. */
function parseHash(text: string): PhcHash {
  const [, memory, passes, concurrency, salt, tag] = phc.exec(text) ?? []
  if (salt === undefined || tag === undefined) throw new Error('a stored password hash is not an argon2id PHC string')
  return {
    cost: { memory_kib: Number(memory), passes: Number(passes), concurrency: Number(concurrency) },
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

/** Lets at most `max` pieces of work run at once, in the order they came; one that waits `wait_ms` is turned away. */
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
    // A finished turn is handed to the next caller, so `running` only falls when the queue is empty.
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
