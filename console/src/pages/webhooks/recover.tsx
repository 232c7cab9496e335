import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput } from '../../ui/forms/field.tsx'
import { tell } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'
const spans = { '1': 'the last hour', '24': 'the last day', '168': 'the last 7 days', '719': 'the last 30 days' }

/** Everything that was given up since a moment is delivered again. */
export function Recover({ webhook_id, isOpen, close }: { webhook_id: string; isOpen: boolean; close: () => void }) {
  const [hours, setHours] = useState('24')
  const queries = useQueryClient()
  const recover = useMutation({
    mutationFn: () =>
      api.webhooks.recover(webhook_id, { since: new Date(Date.now() - Number(hours) * 3_600_000).toISOString() }),
    onSuccess: ({ message, has_more }) => {
      tell(has_more ? `${message}. There are more: redeliver again.` : message)
      close()
      return queries.invalidateQueries({ queryKey: ['webhooks'] })
    },
  })
  return (
    <Dialog title="Redeliver failed events" isOpen={isOpen} close={close}>
      <p className="mb-3 text-sm">
        Failed events are sent again, the oldest first, with their original identifiers, so a receiver that remembers
        them handles each event once.
      </p>
      {recover.isError && <ErrorBox error={recover.error} />}
      <Field label="Given up in">
        <SelectInput value={hours} onChange={(event) => setHours(event.target.value)}>
          <Options of={spans} />
        </SelectInput>
      </Field>
      <div className="mt-4 flex justify-end">
        <Button kind="primary" onClick={() => recover.mutate()} disabled={recover.isPending}>
          Redeliver all
        </Button>
      </div>
    </Dialog>
  )
}
