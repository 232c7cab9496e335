import { useEffect } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQueryClient } from '@tanstack/react-query'
import { paths } from '../paths.ts'
import { useOpenProject } from './open-project.ts'

/** What opens the menu, as the keys of this machine are called. */
export const menuKeys = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'

/** What keys do, in the words of the list that `?` shows. */
export const shortcutList: readonly [string, string][] = [
  [menuKeys, 'Go anywhere; start, pause, stop an agent; create'],
  ['/', 'Search in this list, where it can be searched'],
  ['g p', 'Projects'],
  ['g h', 'Home of the project'],
  ['g a', 'Agents'],
  ['g t', 'Tasks'],
  ['g i', 'Approvals'],
  ['g l', 'Logs'],
  ['g m', 'Metrics'],
  ['g w', 'Webhooks'],
  ['g k', 'API keys'],
  ['j k', 'Down and up in a list'],
  ['Enter', 'Open'],
  ['x', 'Select an agent or a task in its list'],
  ['r', 'Refresh'],
  ['?', 'This list'],
  ['Esc', 'Close the top dialog or menu'],
]

/** How long `g` waits for its second key. */
const second_ms = 1_200

/** Keyboard shortcuts of the whole console. They are inactive while the user types, and while a dialog is open. */
export function useShortcuts(open: { menu: () => void; help: () => void }): void {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const project_id = useOpenProject()

  useEffect(() => {
    let went_at = -Infinity
    const go = (key: string): boolean => {
      if (key === 'p') void navigate(paths.projects())
      else if (key === 'w') void navigate(paths.webhooks())
      else if (key === 'k') void navigate(paths.keys())
      else if (project_id === undefined) return false
      else {
        const way = {
          h: paths.home,
          a: paths.agents,
          t: paths.tasks,
          i: paths.approvals,
          l: paths.logs,
          m: paths.metrics,
        }[key]
        if (!way) return false
        void navigate(way(project_id))
      }
      return true
    }
    const onKey = (event: KeyboardEvent): void => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        open.menu()
        return
      }
      if (
        event.metaKey ||
        event.ctrlKey ||
        event.altKey ||
        isTyping(event.target) ||
        document.querySelector('[role=dialog]:not([data-toast]),[role=menu]')
      )
        return
      if (performance.now() - went_at < second_ms) {
        went_at = -Infinity
        if (go(event.key)) event.preventDefault()
        return
      }
      if (event.key === 'g') went_at = performance.now()
      else if (event.key === '?') open.help()
      else if (event.key === '/') focusSearch(event)
      else if (event.key === 'r') void queries.invalidateQueries()
      else if (event.key === 'j' || event.key === 'k') moveInList(event.key === 'j' ? 1 : -1)
      else if (event.key === 'x')
        // Of a table: the checkbox of a question in the inbox is an answer, and chooses nothing.
        (
          document.activeElement?.closest('tr[data-row]')?.querySelector('input[type=checkbox]') as HTMLElement | null
        )?.click()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [navigate, queries, project_id, open])
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest('[role=combobox],[role=listbox]') !== null ||
      (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== 'checkbox'))
  )
}

function focusSearch(event: KeyboardEvent): void {
  const search = document.querySelector<HTMLElement>('[data-search]')
  if (!search) return
  event.preventDefault()
  search.focus()
}

/**
 * Moves the focus to what opens the next row: what says so of itself, else its first link, else its first button. It begins at a row
 * that is in sight.
 */
function moveInList(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const first = by === 1 ? (rows.find(isInSight) ?? rows[0]) : (rows.findLast(isInSight) ?? rows.at(-1))
  const next = at === -1 ? first : rows[at + by]
  const opener = ['[data-open]', 'a', 'button'].map((kind) => next?.querySelector<HTMLElement>(kind)).find(Boolean)
  opener?.focus()
}

function isInSight(row: HTMLElement): boolean {
  const { left, top, height } = row.getBoundingClientRect()
  return row.contains(document.elementFromPoint(left + 2, top + height / 2))
}
