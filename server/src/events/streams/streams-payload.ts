/** The content of one NOTIFY between processes: ids by kind of signal, and notes. */
export interface Payload {
  /** The name of the sender's bus. */
  origin: string
  signals?: Partial<Record<string, string[]>>
  notes?: unknown[]
}

/** Maximum bytes of a payload; PostgreSQL refuses 8000 and more. */
const payloadBytesMax = 7600
/** Bytes of a payload besides its ids or notes. */
const frameBytes = 120

/** A payload of another Cadre process; undefined for anything else, because any client of the database may send one. */
export function readPayload(text: string | undefined): Payload | undefined {
  try {
    const payload = JSON.parse(text ?? '') as Partial<Payload> | null
    const { origin, signals = {}, notes = [] } = payload ?? {}
    if (typeof origin !== 'string' || !Array.isArray(notes)) return undefined
    return Object.values(signals).every((ids) => Array.isArray(ids)) ? { origin, signals, notes } : undefined
  } catch {
    return undefined
  }
}

/** Splits signals into payloads that PostgreSQL accepts. Ids are ASCII, so characters are bytes. */
export function packSignals(origin: string, signals: Record<string, readonly string[]>): string[] {
  const texts: string[] = []
  let current: Record<string, string[]> = {}
  let size = frameBytes
  for (const [kind, ids] of Object.entries(signals)) {
    for (const id of ids) {
      if (size + id.length + 3 > payloadBytesMax) {
        texts.push(JSON.stringify({ origin, signals: current }))
        current = {}
        size = frameBytes
      }
      const list = (current[kind] ??= [])
      list.push(id)
      size += id.length + 3 + (list.length === 1 ? kind.length + 6 : 0)
    }
  }
  if (Object.keys(current).length > 0) texts.push(JSON.stringify({ origin, signals: current }))
  return texts
}

/** Packs notes, which are JSON already, in order into as few payloads as possible. */
export function packNotes(origin: string, notes: readonly string[]): string[] {
  const texts: string[] = []
  let current: string[] = []
  let size = frameBytes
  const pack = (): void => {
    if (current.length > 0) texts.push(`{"origin":${JSON.stringify(origin)},"notes":[${current.join(',')}]}`)
    current = []
    size = frameBytes
  }
  for (const note of notes) {
    const bytes = Buffer.byteLength(note) + 1
    if (size + bytes > payloadBytesMax) pack()
    current.push(note)
    size += bytes
  }
  pack()
  return texts
}
