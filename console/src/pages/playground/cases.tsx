import { Pencil, Plus, Trash2 } from 'lucide-react'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { CaseDialog } from './case-dialog.tsx'
import type { TaskInput } from './input.ts'
import { useRefreshTestCases, type TestCase, type useTestCases } from './test-cases.ts'

interface Cases {
  project_id: string
  agent_id: string
  cases: ReturnType<typeof useTestCases>
  /** The one that is open. */
  open_id: string | undefined
  /** What the address of a case keeps, beside the case. */
  search: object
  /** What stands in the message, or why that is nothing to keep. */
  read: { input: TaskInput } | { fault: string }
  opened: (id: string | undefined) => void
}

/** The test cases of an agent: each is a link that puts its input into the message; what stands there can be kept as another. */
export function Cases({ project_id, agent_id, cases, open_id, search, read, opened }: Cases) {
  const refresh = useRefreshTestCases(project_id, agent_id)
  const [saving, setSaving] = useState<TestCase | 'new'>()
  const [leaving, setLeaving] = useState<TestCase>()
  const reason = 'fault' in read ? read.fault : undefined
  return (
    <section aria-labelledby="cases" className="rounded-lg border border-line bg-panel max-lg:order-last">
      <div className="flex min-h-11 items-center justify-between gap-2 border-b border-line px-3 py-1.5">
        <h2 id="cases" className="!text-base">
          Test cases
        </h2>
        <Button onClick={() => setSaving('new')} reason={reason}>
          <Plus size={14} aria-hidden /> Save as test case
        </Button>
      </div>
      <ErrorBox error={cases.error} retry={() => void cases.refetch()} />
      {cases.data?.length === 0 && (
        <p className="p-3 text-sm text-soft">
          No test cases yet. Save an input with its expected answer, and run it again after each change.
        </p>
      )}
      <ul className="max-h-80 overflow-y-auto" aria-label="Test cases">
        {cases.data?.map((one) => (
          <li
            key={one.id}
            className={`flex items-center gap-1 border-b border-line py-1 pr-1.5 pl-3 last:border-b-0 ${one.id === open_id ? 'bg-accent-soft' : ''}`}
          >
            <Link
              {...paths.playground(project_id, { ...search, agent: agent_id, case: one.id })}
              aria-current={one.id === open_id ? 'true' : undefined}
              className="min-w-0 flex-1 truncate"
              title={one.name}
            >
              {one.name}
            </Link>
            <IconButton
              label={`Change ${one.name}`}
              onClick={() => setSaving(one)}
              reason={one.id === open_id ? reason : 'Open it first to edit its input'}
            >
              <Pencil size={14} aria-hidden />
            </IconButton>
            <IconButton label={`Delete ${one.name}`} onClick={() => setLeaving(one)}>
              <Trash2 size={14} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      {saving !== undefined && !('fault' in read) && (
        <CaseDialog
          project_id={project_id}
          agent_id={agent_id}
          changed={saving === 'new' ? undefined : saving}
          input={read.input}
          close={() => setSaving(undefined)}
          saved={({ id }) => opened(id)}
        />
      )}
      <ConfirmDialog
        isOpen={leaving !== undefined}
        close={() => setLeaving(undefined)}
        title={`Delete ${leaving?.name ?? ''}?`}
        action="Delete test case"
        run={async () => {
          if (!leaving) return
          await api.testCases.delete(project_id, agent_id, leaving.id)
          await refresh()
          if (leaving.id === open_id) opened(undefined)
        }}
      >
        <p>Its tasks are not deleted.</p>
      </ConfirmDialog>
    </section>
  )
}
