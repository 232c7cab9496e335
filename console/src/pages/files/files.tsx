import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useRef, useState, type DragEvent } from 'react'
import { fileBounds, isImageType } from '#contract/resources/files.ts'
import type { FileObject } from '#sdk/types.ts'
import { APIError } from '#sdk/errors.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { formatSize, plural } from '../../format.ts'
import { contentUrl, tooLarge } from '../../task-parts/files.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Trash2 } from 'lucide-react'
import type { Column } from '../../ui/data-table.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'

const pageSize = 20

/** What goes into tasks and what comes out of them. */
export default function Files() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const search = params.q
  const task_id = params.task
  const query = { limit: pageSize, offset, ...(search ? { search } : {}), ...(task_id ? { task_id } : {}) }
  const queries = useQueryClient()
  const files = useQuery({
    queryKey: ['project', project_id, 'files', query],
    queryFn: () => api.files.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  const again = () => queries.invalidateQueries({ queryKey: ['project', project_id, 'files'] })
  const upload = useMutation({
    mutationFn: async (chosen: readonly globalThis.File[]) => {
      const fault = chosen.map(tooLarge).find((one) => one !== undefined)
      if (fault !== undefined) throw new Error(fault)
      // One after the other, so that one that is refused does not end the others in the middle.
      for (const file of chosen) await api.files.upload(project_id, file, { name: file.name })
      return chosen.length
    },
    onSuccess: (count) => tell(`${plural(count, 'file is', 'files are')} uploaded`),
    onSettled: again,
  })
  const [removed, setRemoved] = useState<FileObject>()
  const [inUse, setInUse] = useState(false)
  const remove = async () => {
    try {
      await api.files.delete(project_id, removed!.id, inUse ? { force: true } : {})
    } catch (error) {
      if (error instanceof APIError && error.code === 'file_in_use') setInUse(true)
      throw error
    }
    tell('The file is deleted')
    await again()
  }
  const mayNot = useDisabledReason('agents')
  const isEmpty = files.data?.total === 0 && search === undefined && task_id === undefined
  // Filters come with the list: they would push what stands in its place while it loads.
  const isFilterable = files.data !== undefined && !isEmpty
  const input = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const drop = (event: DragEvent): void => {
    event.preventDefault()
    setOver(false)
    const dropped = [...event.dataTransfer.files]
    if (mayNot === undefined && dropped.length > 0) upload.mutate(dropped)
  }
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} disabled={upload.isPending} onClick={() => input.current?.click()}>
      {upload.isPending ? 'Uploading…' : label}
    </Button>
  )
  const columns: Column<FileObject>[] = [
    {
      id: 'name',
      header: 'Name',
      isWide: true,
      cell: ({ id, name, media_type }) => (
        <span className="flex min-w-0 items-center gap-2">
          {isImageType(media_type) && (
            <img
              src={contentUrl(project_id, id)}
              alt=""
              loading="lazy"
              className="size-8 shrink-0 rounded border border-line object-cover"
            />
          )}
          <a href={contentUrl(project_id, id)} download={name} className="truncate font-medium">
            {name}
          </a>
        </span>
      ),
    },
    { id: 'type', header: 'Type', cell: ({ media_type }) => <code className="text-soft">{media_type}</code> },
    {
      id: 'size',
      header: 'Size',
      align: 'right',
      cell: ({ bytes }) => <span className="whitespace-nowrap">{formatSize(bytes)}</span>,
    },
    {
      id: 'from',
      header: 'From',
      cell: ({ task_id: of }) => (of === null ? 'upload' : <Link {...paths.task(project_id, of)}>a task</Link>),
    },
    { id: 'came', header: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: 'kept',
      header: 'Expires',
      cell: ({ expires_at }) =>
        expires_at === null ? <span className="whitespace-nowrap">with its tasks</span> : <Time at={expires_at} />,
    },
    {
      id: 'actions',
      header: 'Actions',
      cell: (file) => (
        <span className="inline-flex items-center">
          <CopyButton text={file.id} label={`Copy ${file.id}`} />
          <IconButton
            label={`Delete ${file.name}`}
            reason={mayNot}
            onClick={() => {
              setInUse(false)
              setRemoved(file)
            }}
          >
            <Trash2 size={14} aria-hidden />
          </IconButton>
        </span>
      ),
    },
  ]
  return (
    <PageFrame
      title="Files"
      lead="Files that tasks read and agents create."
      path={`/api/v1/projects/${project_id}/files`}
      query={query}
      actions={isEmpty ? undefined : add('Upload')}
    >
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={({ target }) => {
          const chosen = [...(target.files ?? [])]
          target.value = ''
          if (chosen.length > 0) upload.mutate(chosen)
        }}
      />
      {isFilterable && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          <TypedSearch
            label="Part of the name"
            value={search ?? ''}
            commit={(q) => setParams({ q: q || undefined, offset: undefined }, { replace: true })}
          />
          {task_id !== undefined && (
            <Button onClick={() => setParams({ task: undefined, offset: undefined })}>Of one task: show all</Button>
          )}
        </div>
      )}
      <ErrorBox error={upload.error} title="Not everything was uploaded" />
      <div
        key={files.data === undefined ? 'loading' : 'list'}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={drop}
        className={isOver ? 'rounded-lg outline-2 outline-accent' : ''}
      >
        <Panel>
          <PagedTable
            label="Files"
            noun="files"
            query={files}
            columns={columns}
            keyOf={({ id }) => id}
            offset={offset}
            limit={pageSize}
            go={(to) => setParams({ offset: to ? String(to) : undefined })}
            empty={
              isEmpty ? (
                <EmptyState
                  title="Give agents files to read"
                  actions={add('Upload a file')}
                  command={`${curlOf('POST', `/api/v1/projects/${project_id}/files`, {
                    query: { name: 'invoice.csv' },
                  })} -H 'Content-Type: text/csv' --data-binary @invoice.csv`}
                >
                  <p>
                    Upload an invoice, a photo or a table, and give it to a task by its identifier. Files that agents
                    create appear here too. Drop files here: up to {formatSize(fileBounds.bytes)} each, kept for{' '}
                    {fileBounds.unused_days} days unless a task uses them.
                  </p>
                </EmptyState>
              ) : (
                <p className="p-4 text-soft">No matching files.</p>
              )
            }
          />
        </Panel>
      </div>
      <ConfirmDialog
        title={`Delete ${removed?.name ?? 'the file'}`}
        action={inUse ? 'Delete anyway' : 'Delete file'}
        isOpen={removed !== undefined}
        close={() => setRemoved(undefined)}
        refused={mayNot}
        run={remove}
      >
        <p>
          {inUse
            ? 'A task that has not ended uses it. If its model has not read the file yet, the task will fail.'
            : 'This cannot be undone.'}
        </p>
      </ConfirmDialog>
    </PageFrame>
  )
}
