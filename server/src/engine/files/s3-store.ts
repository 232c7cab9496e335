import type * as S3 from '@aws-sdk/client-s3'
import { Problem } from '#contract/core/problems.ts'
import type { ObjectStore, ObjectWriter } from './file-store.ts'

/** An S3-compatible store and a bucket in it. */
export interface S3Settings {
  /** Undefined for Amazon S3 in the region. */
  endpoint: string | undefined
  region: string
  bucket: string
  access_key_id: string
  secret_access_key: string
}

/** Bytes of each part except the last: the minimum of S3. A file of at most this size is one request. */
const partBytes = 5 * 1_048_576
const timeouts_ms = { connectionTimeout: 5000, requestTimeout: 30_000 }

/** Stores the bytes of files as objects of a bucket, named by the files' ids. One part of an upload is in memory. */
export async function openS3Store({ bucket, ...settings }: S3Settings): Promise<ObjectStore> {
  // Loaded at first use, because the library is large.
  const s3 = await import('@aws-sdk/client-s3')
  const { endpoint, region, access_key_id, secret_access_key } = settings
  const client = new s3.S3Client({
    region,
    // Stores without a domain per bucket need the bucket in the path.
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key },
    requestHandler: timeouts_ms,
    // Not all compatible stores support the newer checksums; Cadre stores its own digests.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  const at = (id: string) => ({ Bucket: bucket, Key: id })
  return {
    write: async (id) => makeWriter(s3, client, at(id)),
    async *read(id, start, end) {
      if (start >= end) return
      const Range = `bytes=${start}-${end - 1}`
      const { Body } = await client.send(new s3.GetObjectCommand({ ...at(id), Range })).catch((error: unknown) => {
        if (error instanceof s3.NoSuchKey)
          throw new Problem('file_not_found', { resource_type: 'file', resource_id: id }, { cause: error })
        throw error
      })
      for await (const chunk of Body as AsyncIterable<Uint8Array>) yield Buffer.from(chunk)
    },
    async remove(id) {
      await client.send(new s3.DeleteObjectCommand(at(id)))
      await abortUploads(s3, client, at(id))
    },
  }
}

/** Aborts multipart uploads that a crash left: stores keep and bill their parts until then. */
async function abortUploads(s3: typeof S3, client: S3.S3Client, at: { Bucket: string; Key: string }): Promise<void> {
  const { Bucket, Key } = at
  const listed = await client
    .send(new s3.ListMultipartUploadsCommand({ Bucket, Prefix: Key }))
    .catch((error: unknown) => {
      // A store that cannot list uploads expires them on a schedule, or by a rule of the bucket.
      if (error instanceof s3.S3ServiceException && lacksListing.has(error.$metadata.httpStatusCode ?? 0))
        return undefined
      throw error
    })
  for (const { UploadId, Key: key } of listed?.Uploads ?? [])
    if (key === Key) await client.send(new s3.AbortMultipartUploadCommand({ ...at, UploadId }))
}

/** Statuses of stores that cannot list uploads: not allowed, not found, no such method, not implemented. */
const lacksListing: ReadonlySet<number> = new Set([403, 404, 405, 501])

function makeWriter(s3: typeof S3, client: S3.S3Client, at: { Bucket: string; Key: string }): ObjectWriter {
  let part = Buffer.alloc(0)
  let filled = 0
  let upload: string | undefined
  const parts: { ETag: string | undefined; PartNumber: number }[] = []
  const sendPart = async (): Promise<void> => {
    upload ??= (await client.send(new s3.CreateMultipartUploadCommand(at))).UploadId
    const PartNumber = parts.length + 1
    const Body = part.subarray(0, filled)
    const { ETag } = await client.send(new s3.UploadPartCommand({ ...at, UploadId: upload, PartNumber, Body }))
    parts.push({ ETag, PartNumber })
    filled = 0
  }
  return {
    async piece(bytes) {
      if (filled + bytes.length > partBytes) await sendPart()
      if (part.length < filled + bytes.length) {
        // For a small file, the buffer is as large as the file.
        const larger = Buffer.allocUnsafe(part.length === 0 ? bytes.length : partBytes)
        part.copy(larger, 0, 0, filled)
        part = larger
      }
      bytes.copy(part, filled)
      filled += bytes.length
    },
    async end() {
      if (upload === undefined)
        return void (await client.send(new s3.PutObjectCommand({ ...at, Body: part.subarray(0, filled) })))
      if (filled > 0) await sendPart()
      const MultipartUpload = { Parts: parts }
      await client.send(new s3.CompleteMultipartUploadCommand({ ...at, UploadId: upload, MultipartUpload }))
    },
    async abort() {
      if (upload !== undefined) await client.send(new s3.AbortMultipartUploadCommand({ ...at, UploadId: upload }))
    },
  }
}
