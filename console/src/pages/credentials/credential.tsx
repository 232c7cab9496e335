import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import type { Credential } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SecretInput, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { Agents, useToolStatistics } from '../tools/tools.tsx'
import { ConnectButton } from './connect-button.tsx'
import { hostsOf, HostsField } from './credential-form.tsx'
import { isConnectable, typeNames } from './credential-labels.ts'
import { State } from './credentials.tsx'

/** One credential: whether it is good, who uses it, and what can be done. Its value is never shown. */
export default function CredentialPage() {
  const project_id = useProjectId()
  const { credential_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['project', project_id, 'credentials', id],
    queryFn: () => api.credentials.get(project_id, id),
    refetchInterval: 5_000,
  })
  const close = () => {
    setParams({ panel: undefined })
    save.reset()
  }
  const save = useMutation({
    mutationFn: (body: Parameters<typeof api.credentials.update>[2]) => api.credentials.update(project_id, id, body),
    gcTime: 0,
    onSuccess: () => {
      tell('Saved. New calls use it')
      close()
      return queries.invalidateQueries({ queryKey: ['project', project_id, 'credentials'] })
    },
  })
  const remove = async () => {
    await api.credentials.delete(project_id, id)
    tell('The credential is deleted')
    await navigate(paths.credentials(project_id))
    await queries.invalidateQueries({
      queryKey: ['project', project_id, 'credentials'],
      predicate: ({ queryKey }) => queryKey[3] !== id,
    })
  }
  const refused = useDisabledReason('agents')
  const mayNot = refused ?? (data ? undefined : 'The credential is not shown yet')
  const isSecret = data?.type !== 'oauth2'
  return (
    <PageFrame
      title={data?.name ?? 'Credential'}
      parent={<Link {...paths.credentials(project_id)}>Credentials</Link>}
      path={`/api/v1/projects/${project_id}/credentials/${id}`}
      missing={{ noun: 'Credential', error, retry: refetch }}
      actions={
        <>
          {data && isConnectable(data) && <ConnectButton project_id={project_id} credential={data} refused={refused} />}
          <Button reason={mayNot} onClick={() => setParams({ panel: 'rotate' })}>
            {isSecret ? 'Rotate' : 'Replace client secret'}
          </Button>
        </>
      }
      more={[
        { label: 'Change hosts', reason: mayNot, onClick: () => setParams({ panel: 'hosts' }) },
        { label: 'Rename', reason: mayNot, onClick: () => setParams({ panel: 'rename' }) },
        { label: 'Delete', reason: mayNot, isDangerous: true, onClick: () => setParams({ panel: 'delete' }) },
      ]}
    >
      {isPending && <Skeleton label="Loading the credential" />}
      <ErrorBox error={error} retry={() => void refetch()} />
      {data && (
        <>
          <Panel className="mb-5 p-4">
            <CredentialFacts credential={data} />
          </Panel>
          <UsedBy project_id={project_id} credential={data} />
          <Dialog
            title={isSecret ? `Rotate ${data.name}` : 'Replace the client secret'}
            isOpen={params.panel === 'rotate'}
            close={close}
            refused={refused}
          >
            <TextForm
              field={isSecret ? 'value' : 'client_secret'}
              label={isSecret ? 'New secret' : 'New client secret'}
              hint="Calls that begin afterwards use it. Calls under way keep the old one."
              type="password"
              action={isSecret ? 'Rotate' : 'Replace'}
              error={save.error}
              isBusy={save.isPending}
              submit={(text) => save.mutate(isSecret ? { value: text } : { client_secret: text })}
            />
          </Dialog>
          <Dialog title={`Hosts of ${data.name}`} isOpen={params.panel === 'hosts'} close={close} refused={refused}>
            <HostsForm
              key={data.updated_at}
              credential={data}
              error={save.error}
              isBusy={save.isPending}
              submit={(body) => save.mutate(body)}
            />
          </Dialog>
          <Dialog title={`Rename ${data.name}`} isOpen={params.panel === 'rename'} close={close} refused={refused}>
            <TextForm
              field="name"
              label="Name"
              hint={
                data.used_by.length > 0
                  ? `Change it in these tools too: ${data.used_by.map(({ name }) => name).join(', ')}. Their calls fail until then.`
                  : 'No tool uses it.'
              }
              type="text"
              initial={data.name}
              action="Rename"
              error={save.error}
              isBusy={save.isPending}
              submit={(name) => save.mutate({ name })}
            />
          </Dialog>
        </>
      )}
      <ConfirmDialog
        title="Delete the credential"
        action="Delete credential"
        isOpen={params.panel === 'delete'}
        close={close}
        refused={refused}
        run={remove}
        typed={data?.name}
      >
        <p>
          {data && data.used_by.length > 0
            ? `Calls of these tools will fail: ${data.used_by.map(({ name }) => name).join(', ')}.`
            : 'No tool uses it.'}
        </p>
      </ConfirmDialog>
    </PageFrame>
  )
}

function CredentialFacts({ credential }: { credential: Credential }) {
  const { id, name, type, status, error, grant, issuer, mcp_url, client_id, scopes, expires_at, connected_at } =
    credential
  const { authorization_endpoint, token_endpoint } = credential
  const known: [string, string | undefined][] = [
    ['Issuer', issuer],
    ['MCP server', mcp_url],
    ['Authorization endpoint', authorization_endpoint],
    ['Token endpoint', token_endpoint],
    ['Client ID', client_id],
    ['Scopes', scopes?.join(' ')],
  ]
  return (
    <Facts isWide>
      <dt>State</dt>
      <dd className="flex flex-wrap items-center gap-x-2">
        <State of={credential} />
        {error && (
          <span className="text-bad">
            {error.message} <code>{error.code}</code>
          </span>
        )}
        {status === 'needs_authorization' && grant === 'authorization_code' && (
          <span className="text-soft">Tasks that need it wait until a person connects it.</span>
        )}
      </dd>
      <dt>Kind</dt>
      <dd>{typeNames[type]}</dd>
      <dt>In a tool</dt>
      <dd>
        <CopyId id={`\${credentials.${name}}`} />
      </dd>
      <dt>Sent only to</dt>
      <dd>
        {credential.allowed_hosts === null ? (
          <span className="text-warn">any host. Set its hosts, so that no tool can send it elsewhere.</span>
        ) : (
          <code className="break-all">{credential.allowed_hosts.join(', ')}</code>
        )}
      </dd>
      {type === 'secret' && (
        <>
          <dt>Value</dt>
          <dd>••••••••, never shown</dd>
        </>
      )}
      {known.map(
        ([label, text]) =>
          text !== undefined &&
          text !== '' && (
            <Fact key={label} label={label}>
              <code className="break-all">{text}</code>
            </Fact>
          ),
      )}
      {connected_at != null && (
        <Fact label="Connected">
          <Time at={connected_at} />
        </Fact>
      )}
      {expires_at != null && (
        <Fact label="Token">
          renewed before it ends, <Time at={expires_at} />
        </Fact>
      )}
      <dt>Changed</dt>
      <dd>
        <Time at={credential.updated_at} />
      </dd>
      <dt>ID</dt>
      <dd>
        <CopyId id={id} />
      </dd>
    </Facts>
  )
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </>
  )
}

/** Tools that name it, and the agents that have them: whom a change concerns. */
function UsedBy({ project_id, credential: { used_by } }: { project_id: string; credential: Credential }) {
  const statistics = useToolStatistics(
    project_id,
    used_by.slice(0, 100).map(({ tool_id }) => tool_id),
  )
  return (
    <Panel title="Used by">
      {used_by.length === 0 ? (
        <p className="p-4 text-soft">No tool uses it. Name it in a header or an address of a tool.</p>
      ) : (
        <ul className="divide-y divide-line">
          {used_by.map(({ tool_id, name }) => (
            <li key={tool_id} data-row={tool_id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
              <Link {...paths.tool(project_id, tool_id)} className="min-w-32 font-medium">
                {name}
              </Link>
              <span className="text-soft">
                agents: <Agents project_id={project_id} of={statistics.data?.get(tool_id)} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

/** Another list of hosts. Who adds one has to know the secret. */
function HostsForm({
  credential: { type, allowed_hosts },
  error,
  isBusy,
  submit,
}: {
  credential: Credential
  error: unknown
  isBusy: boolean
  submit: (body: { allowed_hosts: string[]; value?: string; client_secret?: string }) => void
}) {
  const [hosts, setHosts] = useState(allowed_hosts?.join(', ') ?? '')
  const [secret, setSecret] = useState('')
  const next = hostsOf(hosts)
  const isMore = allowed_hosts !== null && next.some((host) => !allowed_hosts.includes(host))
  const isSecret = type === 'secret'
  const reason =
    next.length === 0
      ? 'Name at least one host'
      : isMore && isSecret && secret === ''
        ? 'Enter the secret to add a host'
        : undefined
  return (
    <Form
      action="Save"
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() =>
        submit({
          allowed_hosts: next,
          ...(secret === '' ? {} : isSecret ? { value: secret } : { client_secret: secret }),
        })
      }
    >
      <HostsField value={hosts} onChange={setHosts} />
      {isMore && (
        <Field
          field={isSecret ? 'value' : 'client_secret'}
          label={isSecret ? 'Secret' : 'Client secret'}
          hint={
            isSecret
              ? 'Enter the secret to allow another host.'
              : 'Without it, the credential has to be connected again.'
          }
        >
          <SecretInput value={secret} onChange={({ target }) => setSecret(target.value)} />
        </Field>
      )}
    </Form>
  )
}

function TextForm({
  field,
  label,
  hint,
  type,
  initial = '',
  action,
  error,
  isBusy,
  submit,
}: {
  field: string
  label: string
  hint: string
  type: 'text' | 'password'
  initial?: string
  action: string
  error: unknown
  isBusy: boolean
  submit: (text: string) => void
}) {
  const [text, setText] = useState(initial)
  return (
    <Form
      action={action}
      reason={text === '' ? `Enter the ${label.toLowerCase()}` : undefined}
      error={error}
      isBusy={isBusy}
      submit={() => submit(text)}
    >
      <Field field={field} label={label} hint={hint}>
        {type === 'password' ? (
          <SecretInput value={text} onChange={({ target }) => setText(target.value)} />
        ) : (
          <TextInput
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
      </Field>
    </Form>
  )
}
