import { useMutation } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../../api/client.ts'
import { formatDuration } from '../../format.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { Badge } from '../../ui/status.tsx'
import { DataTree } from '../../ui/texts/data-tree.tsx'
import { operationsOf } from './api-document.ts'

const firstPath = '/api/v1/projects/{project_id}/agents'

/** Sends a request that only reads, with the session of this browser, and shows what comes back. */
export function TryCall({ project_id, document }: { project_id: string; document: object | undefined }) {
  const [params, setParams] = useSearchText()
  const readable = useMemo(
    () =>
      operationsOf(document ?? {}).filter(
        ({ method, path }) =>
          method === 'GET' &&
          path.startsWith('/api/v1/') &&
          !path.replace('{project_id}', '').includes('{') &&
          !/export|stream|sso/.test(path),
      ),
    [document],
  )
  const path = readable.find((one) => one.path === (params.call ?? firstPath))?.path ?? readable[0]?.path
  const asked = path?.replace('{project_id}', project_id)
  const send = useMutation({
    mutationFn: async (path: string) => {
      const began = performance.now()
      const response = await fetch(api.url(path), { headers: { accept: 'application/json' } })
      const body: unknown = await response.json()
      return { status: response.status, took_ms: Math.round(performance.now() - began), body }
    },
    gcTime: 0,
  })
  return (
    <Panel title="Try a call" actions={asked !== undefined && <CopyAsCurl path={asked} />}>
      <form
        className="space-y-3 p-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (asked !== undefined) send.mutate(asked)
        }}
      >
        <Field
          label="Operation"
          hint="Reads with your session and changes nothing. The API reference has all operations."
        >
          <SelectInput
            value={path ?? ''}
            onChange={({ target }) => {
              setParams({ call: target.value === firstPath ? undefined : target.value }, { replace: true })
              send.reset()
            }}
          >
            {readable.map(({ path: one, summary }) => (
              <option key={one} value={one}>
                {`${summary} (${one})`}
              </option>
            ))}
          </SelectInput>
        </Field>
        <Button
          kind="primary"
          type="submit"
          disabled={send.isPending}
          reason={asked === undefined ? 'The description of the API is being loaded' : undefined}
        >
          Send
        </Button>
        <ErrorBox error={send.error} />
        {send.data && (
          <div role="status" className="space-y-2">
            <p className="flex items-center gap-2 text-sm text-soft">
              <Badge tone={send.data.status < 400 ? 'good' : 'bad'}>{send.data.status}</Badge>
              {formatDuration(send.data.took_ms)}
            </p>
            <DataTree label="Response" value={send.data.body} />
          </div>
        )}
      </form>
    </Panel>
  )
}
