import { Check, Copy } from 'lucide-react'
import { useEffect, useRef, useState, type ButtonHTMLAttributes, type ReactNode } from 'react'
import { APIError } from '../../../sdk/src/errors.ts'

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  tone?: 'plain' | 'primary' | 'danger' | 'quiet'
  size?: 'normal' | 'small'
  /** Why it cannot be pressed: it is then disabled, and says so. */
  reason?: string | undefined
}

const tones = {
  plain: 'border-line bg-panel hover:bg-quiet',
  primary: 'border-transparent bg-accent text-on-accent hover:bg-accent-over',
  danger: 'border-bad text-bad bg-panel hover:bg-bad-soft',
  quiet: 'border-transparent hover:bg-quiet text-soft hover:text-text',
}

/** A button. One that the state forbids can be reached and says why, so it is not `disabled` to assistive technology alone. */
export function Button({ tone = 'plain', size = 'normal', reason, className = '', onClick, ...rest }: ButtonProps) {
  const sizes = size === 'small' ? 'min-h-6 px-2 text-xs' : 'min-h-8 px-3 text-sm'
  const isOff = reason !== undefined
  return (
    <button
      type="button"
      {...rest}
      {...(isOff ? { 'aria-disabled': true, title: reason } : {})}
      onClick={isOff ? undefined : onClick}
      className={`inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap ${sizes} ${tones[tone]} ${isOff ? 'cursor-not-allowed opacity-60' : 'cursor-pointer'} disabled:cursor-not-allowed disabled:opacity-60 ${className}`}
    />
  )
}

/** Copies text, and says that it did. */
export function CopyButton({ text, label }: { text: string | (() => string | Promise<string>); label: string }) {
  const [isDone, setDone] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className="inline-flex size-6 shrink-0 cursor-pointer items-center justify-center rounded text-soft hover:bg-quiet hover:text-text"
      onClick={async () => {
        await navigator.clipboard.writeText(typeof text === 'string' ? text : await text())
        setDone(true)
        clearTimeout(timer.current)
        timer.current = setTimeout(() => setDone(false), 1500)
      }}
    >
      {isDone ? <Check size={14} aria-hidden="true" /> : <Copy size={14} aria-hidden="true" />}
      <span className="sr-only" role="status">
        {isDone ? 'Copied' : ''}
      </span>
    </button>
  )
}

/** An identifier, whole, with its button. */
export function Id({ id, label = 'Copy id' }: { id: string; label?: string }) {
  return (
    <span className="inline-flex min-w-0 items-center gap-1">
      <code className="truncate font-mono text-xs text-soft">{id}</code>
      <CopyButton text={id} label={label} />
    </span>
  )
}

/** What went wrong: the message, the code and the request, and another try where that makes sense. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const known = error instanceof APIError ? error : undefined
  const message = error instanceof Error ? error.message : String(error)
  return (
    <div role="alert" className="rounded-md border border-bad bg-bad-soft p-3 text-sm">
      <p className="font-medium text-bad">{message}</p>
      {known && (
        <p className="mt-1 flex flex-wrap items-center gap-2 text-xs text-text">
          <code>{known.code}</code>
          {known.requestId !== null && <Id id={known.requestId} label="Copy request id" />}
        </p>
      )}
      {onRetry && (
        <Button size="small" className="mt-2" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** Nothing is there: what it would be, and how there comes to be one. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-lg px-4 py-12 text-center">
      <p className="font-semibold">{title}</p>
      <div className="mt-2 space-y-3 text-sm text-soft">{children}</div>
    </div>
  )
}

/** Choices of which one holds, as buttons beside each other. */
export function Choices<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T
  options: readonly (readonly [T, string])[]
  onChange: (value: T) => void
}) {
  return (
    <div role="group" aria-label={label} className="inline-flex rounded-md border border-line bg-quiet p-0.5">
      {options.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === value}
          onClick={() => onChange(name)}
          className={`min-h-7 cursor-pointer rounded px-2.5 text-xs font-medium whitespace-nowrap ${name === value ? 'bg-panel text-text shadow-xs' : 'text-soft hover:text-text'}`}
        >
          {text}
        </button>
      ))}
    </div>
  )
}

export const inputClass =
  'min-h-8 min-w-0 rounded-md border border-edge bg-panel px-2 text-sm text-text placeholder:text-soft'

/** A page that fills the window below the bar and scrolls inside, without the margins of other pages. */
export const fullHeight = '-m-4 flex h-[calc(100dvh-3rem)] min-h-0 flex-col bg-page sm:-m-6'
