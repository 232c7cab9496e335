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

/** How much there may be of files. */
export const fileBounds = {
  /** Of one file. */
  bytes: 20 * 1_048_576,
  /** Bytes of a name, as UTF-8. */
  name_bytes: 255,
  per_project: 50_000,
  /** Days that a file is kept which no task names. */
  unused_days: 30,
} as const

/** Pictures that models take and browsers may show. */
export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** Whether files of a media type are pictures that models see and browsers show. */
export function isImageType(media_type: string): boolean {
  return (imageTypes as readonly string[]).includes(media_type)
}

/** Whether files of a media type are text that a model can read. */
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
    name: Type.String({ description: 'Without path separators and control characters.' }),
    media_type: Type.String({ description: 'What its bytes say that it is.' }),
    bytes: Type.Integer({ minimum: 0 }),
    sha256: Type.String({ description: 'Of its bytes, as 64 hexadecimal digits.' }),
    created_at: Timestamp,
    created_by: Type.String(),
    task_id: Nullable(
      Type.String({ description: 'The task whose tools made it, or with whose input it came; null of an upload.' }),
    ),
    expires_at: Nullable({
      ...Timestamp,
      description:
        'When it is removed unless a task names it. Null of one that a task names: it goes with the last of them.',
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
/** A file that a task's tools kept as a result. */
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
  sdk_note: 'Takes a `Blob`, bytes, a stream or text; a `Blob` with a name keeps it with `{ name: file.name }`.',
  method: 'POST',
  summary: 'Upload a file',
  description: `The bytes as the body, with any \`Content-Type\`, or \`multipart/form-data\` with the file as \`file\` and optionally its \`name\`. At most ${fileBounds.bytes} bytes. The media type is read from the bytes.`,
  scope: 'tasks:write',
  bucket: 'tasks.create',
  query: Type.Object({
    name: Type.Optional(
      Type.String({
        maxLength: 2000,
        description: `What it is called. Path separators and control characters are taken out, and it is cut to ${fileBounds.name_bytes} bytes.`,
      }),
    ),
  }),
  upload: {
    'application/octet-stream': Type.String({ format: 'binary', description: 'The bytes of the file.' }),
    'multipart/form-data': Type.Object({
      file: Type.String({ format: 'binary', description: 'The bytes of the file.' }),
      name: Type.Optional(Type.String({ description: 'What it is called; before the name of the part.' })),
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
      Type.String({ maxLength: 100, description: 'Only files that this task made or that came with it.' }),
    ),
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.search,
        description: 'Only files whose name contains this, in any case.',
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
  summary: 'Read what is known of a file',
  description: 'Its name, type, size and digest.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The file.', schema: File, example }],
  problems: ['project_not_found', 'file_not_found'],
})

const contentHeaders = {
  ETag: 'The SHA-256 of the whole file, in quotes.',
  'Accept-Ranges': '`bytes`.',
  'Content-Disposition': '`inline` of PNG, JPEG, GIF and WebP; `attachment` of everything else.',
}

export const getFileContent = defineOperation({
  ...one,
  path: `${one.path}/content`,
  id: 'getFileContent',
  command: 'files download',
  sdk: 'files.content',
  sdk_note: 'The response, to be read as it comes, or whole by `blob()`.',
  method: 'GET',
  summary: 'Download a file',
  description:
    'The bytes, with their media type. `Range` asks for a part of them, `If-None-Match` with the `ETag` for nothing where they are known. Everything but pictures is a download.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [
    { status: 200, description: 'The bytes.', media_type: '*/*', headers: contentHeaders },
    {
      status: 206,
      description: 'The part of them that `Range` asks for.',
      media_type: '*/*',
      headers: { ...contentHeaders, 'Content-Range': 'Which part of how many bytes.' },
    },
    { status: 304, description: 'They are known: `If-None-Match` names them.', headers: { ETag: contentHeaders.ETag } },
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
    'A file that a task names which has not ended is in use, and refused unless `force` is true: then a task that has not sent it to its model yet fails with `file_missing`.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  query: Type.Object({
    force: Type.Optional(Type.Boolean({ default: false, description: 'Also where a task is using it.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'The file is gone.',
      schema: Confirmation({ file_id: Type.String() }),
      example: { message: 'File deleted', file_id: example.id },
    },
  ],
  problems: ['project_not_found', 'file_not_found', 'file_in_use'],
})

/** What goes into tasks and what comes out of them. */
export const fileOperations: Operation[] = [createFile, listFiles, getFile, getFileContent, deleteFile] as Operation[]
