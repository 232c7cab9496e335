import { useQuery } from '@tanstack/react-query'
import { fileBounds } from '#contract/resources/files.ts'
import type { Task } from './types.ts'
import { api } from '../api/client.ts'
import { formatSize } from '../format.ts'
import { ErrorBox } from '../ui/error-box.tsx'

/** Where the bytes of a file are. */
export function contentUrl(project_id: string, file_id: string): string {
  const path = ['projects', project_id, 'files', file_id, 'content'].map(encodeURIComponent).join('/')
  return api.url(`/api/v1/${path}`)
}

const shown: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** A file as a line: its picture where it is one, its name as a download, its size. */
export function FileLine({
  project_id,
  file: { file_id, name, media_type, bytes },
  isSmall = false,
}: {
  project_id: string
  file: { file_id: string; name: string; media_type: string; bytes: number }
  /** With a small picture, beside something else that matters more. */
  isSmall?: boolean
}) {
  const url = contentUrl(project_id, file_id)
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-2 text-sm">
      {shown.includes(media_type) && (
        <img
          src={url}
          alt={name}
          loading="lazy"
          className={`${isSmall ? 'h-12 max-w-24' : 'h-40 max-w-64'} w-auto shrink-0 rounded border border-line object-contain`}
        />
      )}
      <a href={url} download={name} className="truncate">
        {name}
      </a>
      <span className="shrink-0 text-soft">{formatSize(bytes)}</span>
    </span>
  )
}

/** Identifiers of the files that an input names. */
function filesIn(input: Task['input']): string[] {
  if (!Array.isArray(input)) return []
  const parts = input.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  return [...new Set(parts.flatMap((part) => ('file_id' in part ? [part.file_id] : [])))]
}

/** Files that are shown of a list at most. */
const shownFiles = 20

/** Files that something names, as lines; a name alone of those that are gone. */
function NamedFiles({ label, project_id, ids }: { label: string; project_id: string; ids: readonly string[] }) {
  const some = ids.slice(0, shownFiles)
  const files = useQuery({
    queryKey: ['project', project_id, 'files', 'named', some],
    queryFn: () => Promise.all(some.map((id) => Promise.resolve(api.files.get(project_id, id)).catch(() => id))),
    enabled: some.length > 0,
  })
  if (some.length === 0) return null
  return (
    <ul aria-label={label} className="mt-2 space-y-1">
      {files.data?.map((file) =>
        typeof file === 'string' ? (
          <li key={file} className="text-sm text-soft">
            <code>{file}</code> was deleted
          </li>
        ) : (
          <li key={file.id}>
            <FileLine project_id={project_id} file={{ ...file, file_id: file.id }} />
          </li>
        ),
      )}
    </ul>
  )
}

/** The files that came with a task. */
export function InputFiles({ task: { input, project_id } }: { task: Task }) {
  return <NamedFiles label="Files of the input" project_id={project_id} ids={filesIn(input)} />
}

/** How a text names a file that stood in its place. */
const nameInText = /\s?\[(?:image|file) (file_[0-9a-z]{26})\]/g

/** What a person said, with the files that it names in their place. */
export function SaidWithFiles({ project_id, text }: { project_id: string; text: string }) {
  const ids = [...text.matchAll(nameInText)].map(([, id]) => id!)
  const said = ids.length > 0 ? text.replaceAll(nameInText, '').trim() : text
  return (
    <>
      {said !== '' && <p className="break-words whitespace-pre-wrap">{said}</p>}
      <NamedFiles label="Files of the message" project_id={project_id} ids={[...new Set(ids)]} />
    </>
  )
}

/** The files that a tool returned, or that came with a person's answer. */
export function StepFiles({ project_id, output }: { project_id: string; output: unknown }) {
  const { parts = [] } = (output ?? {}) as { parts?: { file_id?: string }[] }
  const ids = parts.flatMap(({ file_id }) => file_id ?? [])
  return <NamedFiles label="Files of the result" project_id={project_id} ids={ids} />
}

/** The files that a task has made so far. */
export function Artifacts({ task: { id, project_id, usage, status } }: { task: Task }) {
  const made = useQuery({
    queryKey: ['project', project_id, 'tasks', 'artifacts', id, status, usage.tool_calls],
    queryFn: () => api.tasks.artifacts(project_id, id),
    enabled: usage.tool_calls > 0,
  })
  const artifacts = made.data?.artifacts ?? []
  if (artifacts.length === 0) return <ErrorBox error={made.error} />
  return (
    <section aria-label="Artifacts" className="mt-3 space-y-1">
      <h3 className="text-xs font-semibold tracking-wide text-soft uppercase">Artifacts</h3>
      <ul className="space-y-1">
        {artifacts.map((file) => (
          <li key={file.file_id}>
            <FileLine project_id={project_id} file={file} />
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Why a file is not taken; undefined where it is. */
export function tooLarge({ size, name }: Pick<globalThis.File, 'size' | 'name'>): string | undefined {
  return size > fileBounds.bytes ? `${name} has more than ${formatSize(fileBounds.bytes)}` : undefined
}
