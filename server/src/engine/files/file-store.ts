import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { fileBounds } from '#contract/resources/files.ts'
import { Problem } from '#contract/core/problems.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { fileName } from './file-name.ts'
import {
  completeFile,
  deleteBegun,
  deleteBegunByCall,
  findOfCall,
  findPiece,
  insertFile,
  insertPiece,
  nameFiles,
  takeRoom,
  type FileFacts,
  type FileRow,
  type FileStore,
} from './file-rows.ts'
import { headBytes, mediaTypeOf } from './media-type.ts'
import { pieceTurns, ProjectTurns, uploadTurns } from './turns.ts'

/** Bytes of a piece of a file: what is in memory of it at a time, and a row of the database. */
export const pieceBytes = 1_048_576

/** Where bytes of files go that do not go into the database. */
export interface ObjectStore {
  /** Takes the pieces of a file, in their order; the object is there once `end` has resolved. */
  write(id: string): Promise<ObjectWriter>
  /** The bytes from `start` up to `end`, not with it. */
  read(id: string, start: number, end: number): AsyncIterable<Buffer>
  /** Removes an object; one that is not there is removed already. */
  remove(id: string): Promise<void>
}

export interface ObjectWriter {
  piece(bytes: Buffer): Promise<void>
  end(): Promise<void>
  abort(): Promise<void>
}

/** A file whose bytes are stored, and which is not visible yet. */
export interface BegunFile extends FileFacts {
  id: string
}

/** What a file is called and whose it is. */
export interface FileOrigin {
  project_id: number
  created_by: string
  name?: string | undefined
  /** The media type as its sender says. */
  declared?: string | undefined
  /** How many bytes it has, where its sender says so: room for them is taken at once. */
  bytes?: number | undefined
}

/** A file that a call of a tool makes. */
export interface MadeFile extends FileOrigin {
  task_id: string
  /** The call and the place in it: the same call makes the same file, however often it is repeated. */
  call_key: string
  is_artifact: boolean
  content: Buffer
}

/** Where the bytes of a whole file are. */
export type StoredFile = Pick<FileRow, 'id' | 'project_id' | 'store' | 'bytes'>

/** Stores files and reads them. */
export interface Files {
  /** Whose turn it is to have its body read. */
  uploadTurns: ProjectTurns
  /**
   * Stores bytes as they come, at most 20 MiB: a piece at a time is in memory. The file is visible after `complete`; a
   * caller that fails before that discards it. Throws `file_too_large`, `quota_exceeded`, and what `source` throws; then nothing is left.
   */
  receive(origin: FileOrigin, source: AsyncIterable<Buffer>): Promise<BegunFile>
  /** Makes a file visible that was received, in the caller's transaction. */
  complete(tx: Sql, file: BegunFile, made?: { task_id?: string }): Promise<FileRow>
  /** Removes a file that was received and not completed. */
  discard(file: Pick<BegunFile, 'id'>): Promise<void>
  /** Stores what a tool made, once for its call: a repeated one gets the file that there is. */
  make(file: MadeFile): Promise<FileRow>
  /** The bytes of a file from `start` up to `end`, not with it; throws `file_not_found` where it is deleted meanwhile. */
  read(file: StoredFile, start?: number, end?: number): AsyncIterable<Buffer>
  /** Removes objects whose rows are gone; gives whether there may be more. */
  sweepObjects(): Promise<boolean>
}

export interface FilesOptions {
  sql: Sql
  /** Bytes that a project may store. */
  project_bytes: number
  /** Without it bytes are in the database. */
  objects?: ObjectStore | undefined
}

export function makeFiles({ sql, project_bytes, objects }: FilesOptions): Files {
  const turns = new ProjectTurns(pieceTurns)
  const store: FileStore = objects ? 's3' : 'database'

  const begin = async (origin: FileOrigin, made: { task_id?: string; call_key?: string } = {}) => {
    const { project_id, created_by } = origin
    const file = { id: newId('file'), project_id, created_by, name: fileName(origin.name), store, ...made }
    const isBegun = await insertFile(sql, file)
    return isBegun ? file : undefined
  }

  const receiveInto = async (
    file: { id: string; name: string; project_id: number },
    { declared, bytes = 0 }: Pick<FileOrigin, 'declared' | 'bytes'>,
    source: AsyncIterable<Buffer>,
  ): Promise<BegunFile> => {
    const writer = await objects?.write(file.id)
    const facts = factsOf()
    const { project_id } = file
    let room = 0
    const needRoom = async (wanted: number): Promise<void> => {
      if (wanted <= room) return
      await turns.run(project_id, () => sql.begin((tx) => takeRoom(tx, file, wanted - room, project_bytes)))
      room = wanted
    }
    let index = 0
    try {
      await needRoom(bytes)
      for await (const piece of pieces(source)) {
        facts.add(piece)
        if (facts.bytes() > fileBounds.bytes) throw fileTooLarge()
        await needRoom(facts.bytes())
        if (writer) await writer.piece(piece)
        else await turns.run(project_id, () => insertPiece(sql, file.id, index, piece))
        index += 1
      }
      await writer?.end()
      return { id: file.id, name: file.name, ...(await facts.end(declared)) }
    } catch (error) {
      await writer?.abort().catch(() => {})
      await objects?.remove(file.id).catch(() => {})
      await deleteBegun(sql, file.id).catch(() => {})
      throw error
    }
  }

  return {
    uploadTurns: new ProjectTurns(uploadTurns),
    async receive(origin, source) {
      const file = await begin(origin)
      if (!file)
        throw new Problem('project_not_found', { resource_type: 'project', resource_id: `proj_${origin.project_id}` })
      return receiveInto(file, origin, source)
    },
    complete: (tx, { id, name, ...facts }, made = {}) => completeFile(tx, id, { ...facts, name: fileName(name) }, made),
    async discard({ id }) {
      await deleteBegun(sql, id)
      // Of a row that went with its project meanwhile, nothing else removes the object.
      await objects?.remove(id)
    },
    async make({ task_id, call_key, is_artifact, content, ...origin }) {
      const there = await findOfCall(sql, call_key)
      if (there) return there
      // An attempt that was cut off may have left a part; that worker has lost the task and does not continue it.
      await deleteBegunByCall(sql, call_key)
      const file = await begin(origin, { task_id, call_key })
      if (!file) {
        // Another attempt completed it just now.
        const completed = await findOfCall(sql, call_key)
        if (completed) return completed
        throw new Problem('file_not_found', { resource_type: 'file', resource_id: call_key })
      }
      const started = await receiveInto(file, { ...origin, bytes: content.length }, Readable.from([content]))
      return sql.begin(async (tx) => {
        const row = await completeFile(tx, started.id, started, { task_id, is_artifact })
        await nameFiles(tx, { task_id, project_id: origin.project_id }, [row.id])
        return row
      })
    },
    read(file, start = 0, end = file.bytes) {
      if (file.store === 'database') return readPieces(sql, turns, file, start, end)
      if (!objects) throw new Error(`file ${file.id} is in an object store, and none is configured`)
      return objects.read(file.id, start, end)
    },
    sweepObjects: () => sweepObjects(sql, objects),
  }
}

export function fileTooLarge(): Problem {
  return new Problem(
    'file_too_large',
    { limit_bytes: fileBounds.bytes },
    { message: `A file has ${fileBounds.bytes} bytes at most.` },
  )
}

/** Bytes as they come, in pieces of one size but for the last. */
async function* pieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = []
  let bytes = 0
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length;) {
      const part = chunk.subarray(at, at + pieceBytes - bytes)
      waiting.push(part)
      bytes += part.length
      at += part.length
      if (bytes < pieceBytes) continue
      const piece = Buffer.concat(waiting)
      // Before it is stored, so that its bytes are in memory once.
      waiting = []
      bytes = 0
      yield piece
    }
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** What is found out about a file while its bytes pass by. */
function factsOf() {
  const hash = createHash('sha256')
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let head = Buffer.alloc(0)
  let isText = true
  let bytes = 0
  const decode = (piece?: Buffer): void => {
    if (!isText) return
    try {
      decoder.decode(piece, { stream: piece !== undefined })
      isText = !piece?.includes(0)
    } catch {
      isText = false
    }
  }
  return {
    add(piece: Buffer) {
      hash.update(piece)
      bytes += piece.length
      if (head.length < headBytes) head = Buffer.concat([head, piece.subarray(0, headBytes - head.length)])
      decode(piece)
    },
    bytes: () => bytes,
    async end(declared: string | undefined): Promise<Omit<FileFacts, 'name'>> {
      decode()
      return { media_type: await mediaTypeOf(head, isText, declared), bytes, sha256: hash.digest('hex') }
    },
  }
}

/** The next piece is read while the one before it is sent. */
async function* readPieces(
  sql: Sql,
  turns: ProjectTurns,
  { id, project_id }: Pick<StoredFile, 'id' | 'project_id'>,
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  const read = (index: number): Promise<Buffer | undefined> | undefined => {
    if (index * pieceBytes >= end) return undefined
    const piece = turns.run(project_id, () => findPiece(sql, id, index))
    // A reader that goes on gets the error; one that has stopped does not need it.
    piece.catch(() => {})
    return piece
  }
  let index = Math.floor(start / pieceBytes)
  for (let next = read(index); next !== undefined;) {
    const piece = await next
    if (!piece) throw new Problem('file_not_found', { resource_type: 'file', resource_id: id })
    const begin = index * pieceBytes
    index += 1
    next = read(index)
    yield piece.subarray(Math.max(0, start - begin), end - begin)
  }
}

/** Objects that one sweep removes. */
const sweepMax = 50

async function sweepObjects(sql: Sql, objects: ObjectStore | undefined): Promise<boolean> {
  if (!objects) return false
  const left = await sql<{ file_id: string }>`select file_id from file_object_left order by file_id limit ${sweepMax}`
  for (const { file_id } of left) {
    await objects.remove(file_id)
    await sql`delete from file_object_left where file_id = ${file_id}`
  }
  return left.length === sweepMax
}

/** All bytes of a file that is known to be small enough for memory. */
export async function readWhole(files: Files, file: StoredFile): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(files.read(file)))
}
