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

/** Bytes of a piece of a file: a row of the database, and what a process holds in memory of it. */
export const pieceBytes = 1_048_576

/** Storage for the bytes of files outside of the database. */
export interface ObjectStore {
  /** Starts an object. It exists once `end` of the writer has resolved. */
  write(id: string): Promise<ObjectWriter>
  /** The bytes from `start` to before `end`. */
  read(id: string, start: number, end: number): AsyncIterable<Buffer>
  /** Removes an object; a missing one is no error. */
  remove(id: string): Promise<void>
}

export interface ObjectWriter {
  piece(bytes: Buffer): Promise<void>
  end(): Promise<void>
  abort(): Promise<void>
}

/** A file whose bytes are stored, but which is not visible yet. */
export interface BegunFile extends FileFacts {
  id: string
}

/** The name and the owner of a new file. */
export interface FileOrigin {
  project_id: number
  created_by: string
  name?: string | undefined
  /** The media type that the sender declares. */
  declared?: string | undefined
  /** Number of bytes, if the sender declares it; room for them is reserved at once. */
  bytes?: number | undefined
}

/** A file that a tool call makes. */
export interface MadeFile extends FileOrigin {
  task_id: string
  /** The call and the position in it. A repeated call makes the same file. */
  call_key: string
  is_artifact: boolean
  content: Buffer
}

/** Where the bytes of a complete file are. */
export type StoredFile = Pick<FileRow, 'id' | 'project_id' | 'store' | 'bytes'>

/** Stores and reads files. */
export interface Files {
  /** Fair turns of projects for reading request bodies. */
  uploadTurns: ProjectTurns
  /**
   * Stores bytes as they arrive, at most 20 MiB, with one piece in memory at a time. The file is visible after
   * `complete`; a caller that fails before that must discard it.
   * @throws `file_too_large`, `quota_exceeded`, and errors of `source`; nothing is stored then
   */
  receive(origin: FileOrigin, source: AsyncIterable<Buffer>): Promise<BegunFile>
  /** Makes a received file visible, in the caller's transaction. */
  complete(tx: Sql, file: BegunFile, made?: { task_id?: string }): Promise<FileRow>
  /** Removes a file that was received and not completed. */
  discard(file: Pick<BegunFile, 'id'>): Promise<void>
  /** Stores a file of a tool, once per call: a repeated call gets the existing file. */
  make(file: MadeFile): Promise<FileRow>
  /**
   * The bytes of a file from `start` to before `end`.
   * @throws `file_not_found` if it is deleted meanwhile
   */
  read(file: StoredFile, start?: number, end?: number): AsyncIterable<Buffer>
  /** Removes objects whose rows were deleted. Returns whether there may be more. */
  sweepObjects(): Promise<boolean>
}

export interface FilesOptions {
  sql: Sql
  /** Maximum bytes of a project's files. */
  project_bytes: number
  /** Without it, bytes are stored in the database. */
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
      // If the row was deleted with its project, nothing else removes the object.
      await objects?.remove(id)
    },
    async make({ task_id, call_key, is_artifact, content, ...origin }) {
      const there = await findOfCall(sql, call_key)
      if (there) return there
      // An interrupted attempt may have left a part. Its worker has lost the task and does not continue it.
      await deleteBegunByCall(sql, call_key)
      const file = await begin(origin, { task_id, call_key })
      if (!file) {
        // Another attempt completed the file just now.
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
    { message: `The file is larger than ${fileBounds.bytes} bytes. Send a smaller one.` },
  )
}

/** Bytes in pieces of `pieceBytes`; the last one may be shorter. */
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
      // Cleared before the piece is stored, so that its bytes are in memory once.
      waiting = []
      bytes = 0
      yield piece
    }
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** Determines digest, size and media type while the bytes pass. */
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

/** Reads the pieces of a file. The next piece is read while the current one is sent. */
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
    // The error reaches a reader that continues; one that has stopped does not need it.
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

/** Maximum number of objects that one sweep removes. */
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

/** All bytes of a file that is small enough for memory. */
export async function readWhole(files: Files, file: StoredFile): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(files.read(file)))
}
