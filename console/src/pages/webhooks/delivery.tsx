import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock, CopyId } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { NextAttempt } from './next-attempt.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import type { DeliveryWithAttempts } from '#sdk/types.ts'

const failures = {
  attempts_exhausted: 'Every attempt failed, so it was given up.',
  webhook_disabled: 'The webhook was disabled before it could be delivered.',
  gone: 'The receiver answered 410: it wants nothing more.',
} as const

/** One delivery: its attempts in the order of time, what was sent and what was answered. */
export default function DeliveryPage() {
  const { webhook_id = '', delivery_id: id = '' } = useParams({ strict: false })
  const queries = useQueryClient()
  const webhook = useQuery({ queryKey: ['webhooks', webhook_id], queryFn: () => api.webhooks.get(webhook_id) })
  const delivery = useQuery({
    queryKey: ['webhooks', webhook_id, 'delivery', id],
    queryFn: () => api.webhooks.getDelivery(webhook_id, id),
    refetchInterval: ({ state }) => (state.data?.status === 'pending' ? 1000 : false),
  })
  const redeliver = useMutation({
    mutationFn: () => api.webhooks.redeliver(webhook_id, id),
    onSuccess: () => {
      tell('Redelivery queued')
      return queries.invalidateQueries({ queryKey: ['webhooks', webhook_id] })
    },
  })
  const { data } = delivery
  const mayNot = useDisabledReason('projects')
  const off = mayNot ?? (webhook.data?.status === 'disabled' ? 'The webhook is disabled: enable it first' : undefined)
  return (
    <PageFrame
      title={data?.event ?? 'Delivery'}
      parent={<Link {...paths.webhook(webhook_id)}>{webhook.data?.url ?? 'Webhook'}</Link>}
      path={`/api/v1/webhooks/${webhook_id}/deliveries/${id}`}
      missing={{ noun: 'Delivery', error: delivery.error, retry: delivery.refetch }}
      actions={
        <Button kind="primary" onClick={() => redeliver.mutate()} disabled={redeliver.isPending || !data} reason={off}>
          {data?.status === 'pending' ? 'Send now' : 'Redeliver'}
        </Button>
      }
    >
      {delivery.isPending && <Skeleton label="Loading the delivery" />}
      <ErrorBox error={delivery.error} retry={() => void delivery.refetch()} />
      <ErrorBox error={redeliver.error} />
      {data && (
        <div className="grid grid-cols-1 gap-5">
          <Panel className="p-4">
            <Facts>
              <dt>State</dt>
              <dd>
                <Status state={data.status} /> {data.failure !== null && failures[data.failure]}
              </dd>
              {data.next_attempt_at !== null && (
                <>
                  <dt>Next attempt</dt>
                  <dd>
                    <NextAttempt at={data.next_attempt_at} exact />
                  </dd>
                </>
              )}
              <dt>Created</dt>
              <dd>
                <Time at={data.created_at} form="exact" /> {data.is_test && 'by a test'}{' '}
                {data.is_redelivery && 'and asked for again'}
              </dd>
              <dt>Delivery</dt>
              <dd>
                <CopyId id={id} />
              </dd>
              <dt>Event</dt>
              <dd>
                <CopyId id={data.event_id} />
              </dd>
            </Facts>
          </Panel>
          <section aria-labelledby="attempts">
            <h2 id="attempts" className="mb-2">
              Attempts
            </h2>
            <p className="mb-2 text-soft">
              {data.attempts.length === 0 ? 'None yet.' : 'The first KiB of the body of each response is kept.'}
            </p>
            <ol className="ml-1.5 border-l border-edge">
              {data.attempts.map((attempt, index) => (
                <Attempt key={attempt.attempt} {...attempt} isLast={index === data.attempts.length - 1} />
              ))}
            </ol>
          </section>
          <section aria-labelledby="body">
            <h2 id="body" className="mb-2">
              Body
            </h2>
            {data.payload === null ? (
              <p className="text-soft">The event is no longer kept.</p>
            ) : (
              <>
                <CodeBlock text={pretty(data.payload)} label="Copy the body of every attempt" />
                <h2 className="mt-5 mb-2">As curl, signed</h2>
                <p className="mb-2 text-soft">
                  The same event to the same address. The signature is made in your shell, from{' '}
                  <code>CADRE_WEBHOOK_SECRET</code>.
                </p>
                <CodeBlock text={signedCurl(data, data.payload)} label="Copy as curl with a signature" />
              </>
            )}
          </section>
        </div>
      )}
    </PageFrame>
  )
}

type AttemptProps = DeliveryWithAttempts['attempts'][number] & { isLast: boolean }

function Attempt({ attempt, at, duration_ms, request, response, error, isLast }: AttemptProps) {
  const isSaid = response !== null && error === `The receiver answered ${response.status}.`
  return (
    <li className="relative mb-3 pl-4">
      <span
        aria-hidden
        className={`absolute top-1.5 -left-[5px] size-2.5 rounded-full ${error === null ? 'bg-good' : 'bg-bad'}`}
      />
      <div className="flex flex-wrap items-center gap-2">
        <strong>Attempt {attempt}</strong>
        <Badge tone={error === null ? 'good' : 'bad'}>{response ? `answered ${response.status}` : 'no answer'}</Badge>
        <span className="text-soft">
          <Time at={at} /> · {formatDuration(duration_ms)}
        </span>
      </div>
      {error !== null && !isSaid && <p className="mt-1 text-sm text-bad">{error}</p>}
      <details className="mt-1" open={isLast}>
        <summary className="min-h-6 text-soft">Request and response</summary>
        <div className="mt-1 grid grid-cols-1 gap-2">
          <CodeBlock
            text={`POST ${request.url}\n${lines(request.headers)}`}
            label={`Copy the request of attempt ${attempt}`}
          />
          {response && (
            <CodeBlock
              text={`${response.status}\n${lines(response.headers)}${response.body ? `\n\n${response.body}` : ''}`}
              label={`Copy the response of attempt ${attempt}`}
            />
          )}
        </div>
      </details>
    </li>
  )
}

function lines(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

/** The same event to the same address, with a signature that is made where the secret is: in the reader's own shell. */
function signedCurl({ event_id, attempts }: DeliveryWithAttempts, payload: string): string {
  const url = attempts.at(-1)?.request.url ?? 'https://hooks.example.com'
  return `BODY=${quoted(payload)}
TIME=$(date +%s)
KEY=$(printf %s "\${CADRE_WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -vtx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "${event_id}.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary | base64)
curl ${quoted(url)} -H 'Content-Type: application/json' \\
  -H 'webhook-id: ${event_id}' -H "webhook-timestamp: $TIME" \\
  -H "webhook-signature: v1,$SIGNATURE" -d "$BODY"`
}

/** A word of a POSIX shell, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
