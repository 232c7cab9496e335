import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Badge } from '../../ui/status.tsx'
import { tell } from '../../ui/toast.tsx'

/** Whether members may let in apps that are not registered, and are known by their metadata document. */
export function ClientDocuments({ refused }: { refused: string | undefined }) {
  const queries = useQueryClient()
  const [isAsked, setAsked] = useState(false)
  const organization = useQuery({ queryKey: ['organization'], queryFn: () => api.organization.get() })
  const isAllowed = organization.data?.client_documents
  return (
    <Panel
      title="Unregistered apps"
      className="mt-4"
      actions={
        isAllowed !== undefined && (
          <Badge tone={isAllowed ? 'good' : 'quiet'}>{isAllowed ? 'allowed' : 'not allowed'}</Badge>
        )
      }
    >
      <div className="flex flex-wrap items-center justify-between gap-3 p-4">
        <p className="max-w-3xl text-soft">
          Apps such as Claude Code and VS Code identify themselves by a metadata document at their address, without
          being registered here. Members see the host of the document before they allow access.
        </p>
        <Button
          reason={refused ?? (isAllowed === undefined ? 'The organization is loading' : undefined)}
          kind={isAllowed ? 'danger' : 'plain'}
          onClick={() => setAsked(true)}
        >
          {isAllowed === false ? 'Allow unregistered apps' : 'Deny unregistered apps'}
        </Button>
      </div>
      <ErrorBox error={organization.error} retry={() => void organization.refetch()} />
      <ConfirmDialog
        isOpen={isAsked}
        close={() => setAsked(false)}
        kind={isAllowed ? 'danger' : 'primary'}
        title={isAllowed ? 'Deny unregistered apps?' : 'Allow unregistered apps?'}
        action={isAllowed ? 'Deny' : 'Allow'}
        run={async () => {
          await api.organization.update({ client_documents: !isAllowed })
          await Promise.all([
            queries.invalidateQueries({ queryKey: ['organization'] }),
            queries.invalidateQueries({ queryKey: ['sessions'] }),
          ])
          tell(isAllowed ? 'Unregistered apps are denied' : 'Unregistered apps are allowed')
        }}
      >
        <p>
          {isAllowed
            ? 'Members can no longer allow such apps, and the access that they gave ends with the next request of the app.'
            : 'Members can allow such apps to act for them. Access that was ended stays ended.'}
        </p>
      </ConfirmDialog>
    </Panel>
  )
}
