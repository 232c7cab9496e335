import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Confirmation,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'

/** Bounds of files. */
export const fileBounds = {
  /** Size of one file. */
  bytes: 20 * 1_048_576,
  /** Length of a name in bytes of UTF-8. */
  name_bytes: 255,
  per_project: 50_000,
  /** Days that a file without a task is kept. */
  unused_days: 30,
} as const

/** Media types of images that models accept and browsers may show. */
export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** Whether models and browsers show files of this media type as images. */
export function isImageType(media_type: string): boolean {
  return (imageTypes as readonly string[]).includes(media_type)
}

/** Whether files of this media type are text that a model can read. */
export function isTextType(media_type: string): boolean {
  const type = media_type.split(';', 1)[0]!.trim().toLowerCase()
  return (
    /^text\/[\w.+-]+$/.test(type) ||
    /^(application|image)\/([\w.-]+\+)?(json|xml)$/.test(type) ||
    type === 'application/csv' ||
    type === 'application/x-ndjson'
  )
}

export const File = Named(
  'File',
  Type.Object({
    id: Type.String(),
    name: Type.String({ description: 'The name, without path separators and control characters.' }),
    media_type: Type.String({ description: 'The media type, detected from the bytes.' }),
    bytes: Type.Integer({ minimum: 0 }),
    sha256: Type.String({ description: 'SHA-256 of the bytes, as 64 hexadecimal digits.' }),
    created_at: Timestamp,
    created_by: Type.String(),
    task_id: Nullable(
      Type.String({ description: 'The task whose tools created it or whose input contained it; null for an upload.' }),
    ),
    expires_at: Nullable({
      ...Timestamp,
      description:
        'When the file is removed if no task uses it. Null if a task uses it: then it is removed with the last such task.',
    }),
  }),
)

const example = {
  id: 'file_01jcm3x5v8f9a2b4c6d8e0g2h4',
  name: 'invoice.pdf',
  media_type: 'application/pdf',
  bytes: 48_213,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  created_at: '2026-11-20T09:30:00.000Z',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  task_id: null,
  expires_at: '2026-12-20T09:30:00.000Z',
}
/** A file that a task's tools saved as a result. */
export const Artifact = Named(
  'Artifact',
  Type.Object({
    file_id: Type.String(),
    name: Type.String(),
    media_type: Type.String(),
    bytes: Type.Integer({ minimum: 0 }),
    sha256: Type.String(),
  }),
)

export const artifactExample = {
  file_id: example.id,
  name: example.name,
  media_type: example.media_type,
  bytes: example.bytes,
  sha256: example.sha256,
}
const common = { error_format: 'agents', tag: 'Files', credentials: anyCredential, extension: true } as const
const all = {
  ...common,
  path: '/api/v1/projects/{project_id}/files',
  params: { project_id: projectParameter },
} as const
const one = {
  ...common,
  path: `${all.path}/{file_id}`,
  params: { ...all.params, file_id: { description: 'The file.', example: example.id } },
} as const

export const createFile = defineOperation({
  ...all,
  id: 'createFile',
  audit: 'file.created',
  command: 'files upload',
  sdk: 'files.upload',
  sdk_note: 'Accepts a `Blob`, bytes, a stream or text. To keep the name of a `File`, pass `{ name: file.name }`.',
  method: 'POST',
  summary: 'Upload a file',
  description: `The body is the bytes, with any \`Content-Type\`, or \`multipart/form-data\` with the part \`file\` and optionally \`name\`. At most ${fileBounds.bytes} bytes. The media type is detected from the bytes.`,
  scope: 'tasks:write',
  bucket: 'tasks.create',
  query: Type.Object({
    name: Type.Optional(
      Type.String({
        maxLength: 2000,
        description: `Name of the file. Path separators and control characters are removed, and it is cut to ${fileBounds.name_bytes} bytes.`,
      }),
    ),
  }),
  upload: {
    'application/octet-stream': Type.String({ format: 'binary', description: 'The bytes of the file.' }),
    'multipart/form-data': Type.Object({
      file: Type.String({ format: 'binary', description: 'The bytes of the file.' }),
      name: Type.Optional(Type.String({ description: 'Name of the file; it overrides the filename of the part.' })),
    }),
  },
  responses: [{ status: 201, description: 'The file.', schema: File, example }],
  problems: ['project_not_found', 'file_too_large', 'quota_exceeded'],
})

export const listFiles = defineOperation({
  ...all,
  id: 'listFiles',
  command: 'files list',
  sdk: 'files.list',
  method: 'GET',
  summary: 'List files',
  description: 'Files of the project, newest first.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: offsetQuery({
    task_id: Type.Optional(
      Type.String({ maxLength: 100, description: 'Only files that this task created or that came with its input.' }),
    ),
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.search,
        description: 'Only files whose name contains this text. Case-insensitive.',
      }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of files.',
      schema: Named('FileList', Type.Object({ files: Type.Array(File), pagination: OffsetPagination })),
      example: { files: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getFile = defineOperation({
  ...one,
  id: 'getFile',
  command: 'files get',
  sdk: 'files.get',
  method: 'GET',
  summary: 'Read the metadata of a file',
  description: 'Name, media type, size and digest of the file.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The file.', schema: File, example }],
  problems: ['project_not_found', 'file_not_found'],
})

const contentHeaders = {
  ETag: 'The SHA-256 of the whole file, in quotes.',
  'Accept-Ranges': '`bytes`.',
  'Content-Disposition': '`inline` for PNG, JPEG, GIF and WebP; `attachment` for everything else.',
}

export const getFileContent = defineOperation({
  ...one,
  path: `${one.path}/content`,
  id: 'getFileContent',
  command: 'files download',
  sdk: 'files.content',
  sdk_note: 'Returns the response: stream it, or read it whole with `blob()`.',
  method: 'GET',
  summary: 'Download a file',
  description:
    'The bytes with their media type. Supports `Range` and `If-None-Match`. Browsers download everything except images.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [
    { status: 200, description: 'The bytes.', media_type: '*/*', headers: contentHeaders },
    {
      status: 206,
      description: 'The part that `Range` requests.',
      media_type: '*/*',
      headers: { ...contentHeaders, 'Content-Range': 'The range, and the size of the file.' },
    },
    { status: 304, description: '`If-None-Match` has the `ETag` of the file.', headers: { ETag: contentHeaders.ETag } },
  ],
  problems: ['project_not_found', 'file_not_found', 'range_not_satisfiable'],
})

export const deleteFile = defineOperation({
  ...one,
  id: 'deleteFile',
  audit: 'file.deleted',
  command: 'files delete',
  sdk: 'files.delete',
  method: 'DELETE',
  summary: 'Delete a file',
  description:
    'Fails with 409 if a task that has not ended uses the file, unless `force` is true. Then a task that has not sent it to its model yet fails with `file_missing`.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  query: Type.Object({
    force: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether to delete the file even if a task uses it.' }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'The file is deleted.',
      schema: Confirmation({ file_id: Type.String() }),
      example: { message: 'File deleted', file_id: example.id },
    },
  ],
  problems: ['project_not_found', 'file_not_found', 'file_in_use'],
})

/** Operations on input and output files of tasks. */
export const fileOperations: Operation[] = [createFile, listFiles, getFile, getFileContent, deleteFile] as Operation[]
