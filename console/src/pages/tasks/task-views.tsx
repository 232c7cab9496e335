import { Bookmark, BookmarkX } from 'lucide-react'
import { useState, type FormEvent } from 'react'
import { paths } from '../../paths.ts'
import type { Search } from '../../search-text.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, TextInput } from '../../ui/forms/field.tsx'
import { TabLinks } from '../../ui/tabs.tsx'
import { tell } from '../../ui/toast.tsx'
import { isSameSearch, useSavedViews, viewFault } from './saved-views.ts'

/** Views that most people come for; others are saved by a name. */
const common: { name: string; search: Search }[] = [
  { name: 'All', search: {} },
  { name: 'Running', search: { status: 'running' } },
  { name: 'Waiting', search: { status: 'waiting' } },
  { name: 'Failed in 24 h', search: { status: 'failed', ended: '24h' } },
]

/** Common views and saved ones as links, and a way to save the one that the address asks for. */
export function TaskViews({ project, search }: { project: string; search: Search }) {
  const saved = useSavedViews(project)
  const [isNaming, setNaming] = useState(false)
  const isHere = (view: { search: Search }): boolean => isSameSearch(view.search, search)
  const own = saved.views.find(isHere)
  const current = own ? `own ${own.name}` : (common.find(isHere)?.name ?? '')
  return (
    <div className="mb-4 flex items-start gap-2 border-b border-line max-sm:flex-wrap">
      <div className="-mb-px min-w-0 flex-1 max-sm:basis-full [&>nav]:mb-0 [&>nav]:border-b-0">
        <TabLinks
          label="Views of tasks"
          current={current}
          tabs={[
            ...common.map(({ name, search }) => ({ id: name, label: name, link: paths.tasks(project, search) })),
            ...saved.views.map(({ name, search }) => ({
              id: `own ${name}`,
              label: name,
              link: paths.tasks(project, search),
            })),
          ]}
        />
      </div>
      {own ? (
        <Button
          kind="ghost"
          onClick={() => {
            saved.forget(own.name)
            tell(`View ${own.name} removed`, () => saved.save(own))
          }}
        >
          <BookmarkX size={14} aria-hidden /> Remove view
        </Button>
      ) : (
        <Button
          kind="ghost"
          reason={current === '' ? undefined : 'This view is already saved: change the filters first'}
          onClick={() => setNaming(true)}
        >
          <Bookmark size={14} aria-hidden /> Save view
        </Button>
      )}
      {isNaming && (
        <NameDialog
          fault={(name) => viewFault(name, saved)}
          save={(name) => saved.save({ name, search })}
          close={() => setNaming(false)}
        />
      )}
    </div>
  )
}

interface NameDialog {
  fault: (name: string) => string | undefined
  save: (name: string) => void
  close: () => void
}

function NameDialog({ fault, save, close }: NameDialog) {
  const [text, setText] = useState('')
  const name = text.trim()
  const wrong = fault(name)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (name === '' || wrong !== undefined) return
    save(name)
    close()
  }
  return (
    <Dialog isOpen close={close} title="Save this view">
      <form className="space-y-4" onSubmit={submit}>
        <Field
          label="Name"
          hint="Saves the filters and the order with your account. To share a view, send its address."
          fault={wrong}
        >
          <TextInput autoFocus autoComplete="off" value={text} onChange={(event) => setText(event.target.value)} />
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={name === '' || wrong !== undefined}>
            Save view
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
