import { formatCount } from '../../format.ts'
import { ChevronRight } from 'lucide-react'
import { useMemo, useState, type ReactNode } from 'react'
import { Button } from '../button.tsx'
import { CopyButton } from '../copy.tsx'
import {
  isContainer,
  isEmpty,
  openAtFirst,
  pointerTo,
  shownMembers,
  sizeOf,
  type Container,
} from './data-tree-shape.ts'

/** Characters of a text that are shown before the user asks for all of it, and at most. */
const shownText = 300
const shownTextMost = 200_000
/** Members that are shown more at a time. */
const moreMembers = 500

/** A JSON value as a tree whose branches open and close. Only what is open is in the page, a part of it at a time. */
export function DataTree({ label, value }: { label: string; value: unknown }) {
  const open = useMemo(() => openAtFirst(value), [value])
  return (
    <div className="min-w-0">
      <div
        className="max-h-[32rem] overflow-auto rounded-md border border-line bg-quiet px-3 py-2 font-mono text-xs leading-5 text-text"
        tabIndex={0}
        role="region"
        aria-label={label}
      >
        {opens(value) ? <Members of={value} pointer="" open={open} /> : <Leaf value={value} />}
      </div>
      <div className="mt-1 -ml-1.5">
        <CopyButton size="small" text={() => JSON.stringify(value, undefined, 2)} label="Copy as JSON">
          Copy as JSON
        </CopyButton>
      </div>
    </div>
  )
}

interface Branch {
  of: Container
  pointer: string
  /** What stands open at first. */
  open: ReadonlySet<string>
}

function Members({ of, pointer, open }: Branch) {
  const [count, setCount] = useState(shownMembers)
  const names = useMemo(() => Object.keys(of), [of])
  const left = names.length - count
  // Where nothing opens, no room is kept for what opens it.
  const isFlat = useMemo(() => pointer === '' && !Object.values(of).some(opens), [of, pointer])
  return (
    <ul>
      {names.slice(0, count).map((name) => (
        <Member
          key={name}
          name={name}
          value={(of as Record<string, unknown>)[name]}
          pointer={pointerTo(pointer, name)}
          open={open}
          isFlat={isFlat}
        />
      ))}
      {left > 0 && (
        <li className="py-1 pl-4 font-sans">
          <Button size="small" onClick={() => setCount(count + moreMembers)}>
            Show {formatCount(Math.min(left, moreMembers))} more
          </Button>{' '}
          <span className="text-sm text-soft">of {formatCount(left)}</span>
        </li>
      )}
    </ul>
  )
}

function Member({
  name,
  value,
  isFlat,
  ...place
}: { name: string; value: unknown; isFlat: boolean } & Omit<Branch, 'of'>) {
  const [isOpen, setOpen] = useState(() => place.open.has(place.pointer))
  const title = <span className="break-all text-soft">{name}</span>
  if (!opens(value))
    return (
      <li className={`flex items-baseline gap-2 py-0.5 ${isFlat ? '' : 'pl-4'}`}>
        <span className="max-w-[50%] shrink-0">{title}</span>
        <span className="min-w-0 flex-1">
          <Leaf value={value} />
        </span>
      </li>
    )
  return (
    <li>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex min-h-6 w-full cursor-pointer items-center gap-1 rounded text-left hover:bg-panel"
      >
        <ChevronRight
          size={14}
          aria-hidden
          className={`-ml-0.5 shrink-0 text-soft motion-safe:transition-transform ${isOpen ? 'rotate-90' : ''}`}
        />
        {title}
        <span className="ml-1 whitespace-nowrap text-soft">{sizeOf(value)}</span>
      </button>
      {isOpen && (
        <div className="ml-1.5 border-l border-line pl-2">
          <Members of={value} {...place} />
        </div>
      )}
    </li>
  )
}

function opens(value: unknown): value is Container {
  return isContainer(value) && !isEmpty(value)
}

/** What has no members: a text, a number, a word of JSON, or an empty object or list. */
function Leaf({ value }: { value: unknown }): ReactNode {
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'string')
    return <span className={value === null ? 'text-soft' : 'text-accent'}>{JSON.stringify(value)}</span>
  const end = isWhole ? shownTextMost : shownText
  return (
    <>
      <span className="wrap-anywhere whitespace-pre-wrap">
        "{value.slice(0, end)}
        {value.length > end ? '…' : '"'}
      </span>
      {value.length > shownText && (
        <span className="mt-0.5 mb-1 block font-sans">
          <Button size="small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show less' : `Show all ${formatCount(value.length)} characters`}
          </Button>
        </span>
      )}
    </>
  )
}
