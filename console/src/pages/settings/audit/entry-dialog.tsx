import { Link } from '@tanstack/react-router'
import type { AuditEntry } from '#sdk/types.ts'
import { paths } from '../../../paths.ts'
import { CodeBlock, CopyId } from '../../../ui/copy.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Facts } from '../../../ui/page.tsx'
import { Time } from '../../../ui/time.tsx'
import { changesOf } from './changes.ts'
import { ChangesTable } from './changes-table.tsx'
import { exactFilters, type ExactFilter } from './filters.ts'
import { meaningOf } from './meaning.ts'
import { actorMeaning, actorName } from './names.ts'

type Words = Record<string, string | undefined>

/** All that an entry says: who, with what, from where, and what became of what. */
export function EntryDialog({ entry, search, close }: { entry: AuditEntry; search: Words; close: () => void }) {
  const { action, actor, at, before, after, credential, detail, ip, request_id, target, user_agent } = entry
  const changes = changesOf(before, after)
  const only = (by: ExactFilter, value: string) => <Only by={by} value={value} search={search} />
  return (
    <Dialog title={action} isOpen close={close} width="max-w-3xl">
      <p className="mb-4 text-soft">{meaningOf(action)}</p>
      <Facts>
        <dt>Time</dt>
        <dd>
          <Time at={at} form="exact" />
        </dd>
        <dt>{exactFilters.actor}</dt>
        <dd>
          {actor === null ? (
            <>
              {actorName(entry)} <span className="text-sm text-soft">{actorMeaning(entry)}</span>
            </>
          ) : (
            <>
              {actorName(entry)} <CopyId id={actor.id} short={actor.name !== undefined} /> {only('actor', actor.id)}
            </>
          )}
        </dd>
        {target !== null && (
          <>
            <dt>{exactFilters.target}</dt>
            <dd>
              <CopyId id={target} /> {only('target', target)}
            </dd>
          </>
        )}
        {credential !== null && (
          <>
            <dt>{exactFilters.credential_id}</dt>
            <dd>
              {kinds[credential.kind]} <CopyId id={credential.id} short /> {only('credential_id', credential.id)}
            </dd>
          </>
        )}
        {ip !== null && (
          <>
            <dt>{exactFilters.ip}</dt>
            <dd>
              {ip} {only('ip', ip)}
              {user_agent !== null && user_agent !== '' && <p className="text-sm text-soft">{user_agent}</p>}
            </dd>
          </>
        )}
        {request_id !== null && (
          <>
            <dt>{exactFilters.request_id}</dt>
            <dd>
              <CopyId id={request_id} /> {only('request_id', request_id)}
            </dd>
          </>
        )}
      </Facts>
      {changes.length > 0 && (
        <div className="mt-4">
          <ChangesTable changes={changes} />
        </div>
      )}
      {Object.keys(detail).length > 0 && (
        <div className="mt-4">
          <h3 className="mb-1 text-sm font-medium">Details</h3>
          <CodeBlock text={JSON.stringify(detail, null, 2)} label="Copy details" />
        </div>
      )}
    </Dialog>
  )
}

const kinds = { api_key: 'API key', token: 'OAuth app', session: 'session', lease: 'lease of a worker' } as const

function Only({ by, value, search }: { by: ExactFilter; value: string; search: Words }) {
  return (
    <Link
      {...paths.audit({ ...search, [by]: value, panel: undefined, offset: undefined })}
      aria-label={`only this: ${exactFilters[by]} ${value}`}
      className="text-sm"
    >
      only this
    </Link>
  )
}
