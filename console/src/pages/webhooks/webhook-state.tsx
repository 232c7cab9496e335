import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import type { Webhook } from '#sdk/types.ts'

const disabledWords = {
  requested: 'switched off',
  gone: 'it answered 410',
  failing: 'no delivery succeeded for 5 days',
} as const

/** Whether a webhook gets events, and why not. */
export function WebhookState({
  status,
  disabled_reason,
  failing_since,
}: Pick<Webhook, 'status' | 'disabled_reason' | 'failing_since'>) {
  if (status === 'disabled')
    return (
      <Status state="disabled" label={disabled_reason ? `disabled: ${disabledWords[disabled_reason]}` : 'disabled'} />
    )
  if (failing_since === null) return <Status state="active" />
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5">
      <Status state="failed" label="failing" />
      <span className="text-sm text-soft">
        since <Time at={failing_since} />
      </span>
    </span>
  )
}
