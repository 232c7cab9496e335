import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import { retryWords } from './retry-text.ts'
import { Reveal } from '../settings/reveal.tsx'
import { Deliveries } from './deliveries.tsx'
import { Recover } from './recover.tsx'
import { VerifyHelper } from './verify-helper.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { WebhookState } from './webhook-state.tsx'

/** One webhook: its state, its secret, and what it was sent. */
export default function WebhookPage() {
  const { webhook_id: id = '' } = useParams({ strict: false })
  const [params, setParams] = useSearchText()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const webhook = useQuery({ queryKey: ['webhooks', id], queryFn: () => api.webhooks.get(id) })
  const again = () => queries.invalidateQueries({ queryKey: ['webhooks'] })
  const [secret, setSecret] = useState<{ secret: string; until: string | null }>()
  const close = () => setParams({ panel: undefined })
  const test = useMutation({
    mutationFn: () => api.webhooks.test(id, {}),
    onSuccess: (delivery) => {
      void navigate(paths.delivery(id, delivery.id))
      return again()
    },
  })
  const save = useMutation({
    mutationFn: (body: Parameters<typeof api.webhooks.update>[1]) => api.webhooks.update(id, body),
    onSuccess: () => {
      tell('Saved')
      close()
      return again()
    },
  })
  const turn = useMutation({
    mutationFn: (status: 'active' | 'disabled') => api.webhooks.update(id, { status }),
    onSuccess: (_, status) => {
      tell(`The webhook is ${status}`)
      return again()
    },
  })
  const rotate = async () => {
    const answer = await api.webhooks.rotateSecret(id, {})
    if (answer.secret !== undefined) setSecret({ secret: answer.secret, until: answer.previous_secret_expires_at })
    await again()
  }
  const remove = async () => {
    await api.webhooks.delete(id)
    tell('The webhook is deleted')
    await navigate(paths.webhooks())
    await queries.invalidateQueries({ queryKey: ['webhooks'], predicate: ({ queryKey }) => queryKey[1] !== id })
  }
  const { data } = webhook
  const refused = useDisabledReason('projects')
  const mayNot = refused ?? (data ? undefined : 'The webhook is not shown yet')
  const off = mayNot ?? (data?.status === 'disabled' ? 'The webhook is disabled: enable it first' : undefined)
  return (
    <PageFrame
      title={data ? hostOf(data.url) : 'Webhook'}
      parent={<Link {...paths.webhooks()}>Webhooks</Link>}
      path={`/api/v1/webhooks/${id}`}
      missing={{ noun: 'Webhook', error: webhook.error, retry: webhook.refetch }}
      actions={
        <Button kind="primary" onClick={() => test.mutate()} disabled={test.isPending} reason={off}>
          Send test event
        </Button>
      }
      more={[
        { label: 'Redeliver failed', reason: off, onClick: () => setParams({ panel: 'recover' }) },
        {
          label: data?.status === 'disabled' ? 'Enable' : 'Disable',
          reason: mayNot,
          isBusy: turn.isPending,
          onClick: () => (data?.status === 'disabled' ? turn.mutate('active') : setParams({ panel: 'disable' })),
        },
        { label: 'Edit', reason: mayNot, onClick: () => setParams({ panel: 'edit' }) },
        { label: 'Rotate secret', reason: mayNot, onClick: () => setParams({ panel: 'secret' }) },
        { label: 'Delete', reason: mayNot, isDangerous: true, onClick: () => setParams({ panel: 'delete' }) },
      ]}
    >
      {webhook.isPending && <Skeleton label="Loading the webhook" />}
      <ErrorBox error={webhook.error} retry={() => void webhook.refetch()} />
      <ErrorBox error={test.error ?? (params.panel === 'disable' ? null : turn.error)} />
      {data && (
        <>
          <Panel className="mb-5 p-4">
            <Facts isWide>
              <dt>Address</dt>
              <dd className="break-all">{data.url}</dd>
              <dt>State</dt>
              <dd>
                <WebhookState {...data} />
              </dd>
              <dt>Events</dt>
              <dd>{data.events.join(', ')}</dd>
              {Object.keys(data.filters).length > 0 && (
                <>
                  <dt>Filter</dt>
                  <dd>
                    <code className="break-all">{JSON.stringify(data.filters)}</code>
                  </dd>
                </>
              )}
              <dt>Secret</dt>
              <dd>
                ••••••••, never shown again
                {data.previous_secret_expires_at !== null && (
                  <>
                    ; the previous one also signs, until <Time at={data.previous_secret_expires_at} />
                  </>
                )}
              </dd>
              <dt>Retries</dt>
              <dd>{retryWords}</dd>
              <dt>Created</dt>
              <dd>
                <Time at={data.created_at} />
              </dd>
              <dt>ID</dt>
              <dd>
                <CopyId id={id} />
              </dd>
            </Facts>
          </Panel>
          <Deliveries webhook_id={id} />
          <VerifyHelper />
          <Dialog
            title="Edit webhook"
            isOpen={params.panel === 'edit'}
            close={close}
            width="max-w-2xl"
            refused={refused}
          >
            <WebhookForm
              key={data.updated_at}
              values={data}
              error={save.error}
              isBusy={save.isPending}
              submit={({ url, events, filters, status }) => save.mutate({ url, events, filters, status })}
            />
          </Dialog>
        </>
      )}
      <ConfirmDialog
        title="Rotate the signing secret"
        action="Rotate secret"
        kind="primary"
        isOpen={params.panel === 'secret'}
        close={close}
        refused={refused}
        run={rotate}
      >
        <p>
          A new secret is made. For 24 hours each request is signed by both, so a receiver that knows either one accepts
          it: change yours within that time.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Disable the webhook"
        action="Disable webhook"
        isOpen={params.panel === 'disable'}
        close={close}
        refused={refused}
        run={() => turn.mutateAsync('disabled')}
      >
        <p>
          Nothing more is sent to it until you enable it. Deliveries that still wait for an attempt are given up: that
          cannot be undone.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Delete the webhook"
        action="Delete webhook"
        isOpen={params.panel === 'delete'}
        close={close}
        refused={refused}
        run={remove}
        typed={data && hostOf(data.url)}
      >
        <p>
          Nothing more is sent to it, and its deliveries can no longer be read. This cannot be undone; disabling it can.
        </p>
      </ConfirmDialog>
      <Recover webhook_id={id} isOpen={params.panel === 'recover'} close={close} />
      {secret && (
        <Reveal
          title="Save the new signing secret"
          secret={secret.secret}
          file={`${id}.secret`}
          done={() => setSecret(undefined)}
        >
          {secret.until !== null && (
            <p className="text-soft">
              The previous secret also signs, until <Time at={secret.until} form="exact" />.
            </p>
          )}
        </Reveal>
      )}
    </PageFrame>
  )
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
