import { Check, Copy } from 'lucide-react'
import { useState } from 'react'
import { Button } from './button.tsx'

/** Copies text; says so for a moment. */
export function CopyButton({
  text,
  label,
  children,
}: {
  text: string | (() => string)
  label: string
  children?: React.ReactNode
}) {
  const [isDone, setDone] = useState(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  const Icon = isDone ? Check : Copy
  return (
    <Button
      kind="ghost"
      onClick={() => void copy()}
      aria-label={children ? undefined : label}
      title={label}
      className="!min-h-6 !px-1.5"
    >
      <Icon size={14} aria-hidden />
      {children}
      <span role="status" className="sr-only">
        {isDone ? 'Copied' : ''}
      </span>
    </Button>
  )
}

/** An identifier, to be read and copied. */
export function CopyId({ id, short = false }: { id: string; short?: boolean }) {
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <code className="truncate text-soft" title={id}>
        {short && id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id}
      </code>
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  )
}

/** Text in a frame, as a program reads it, to be copied. */
export function CodeBlock({ text, label = 'Copy' }: { text: string; label?: string }) {
  return (
    <div className="relative rounded-md border border-line bg-quiet">
      <pre className="overflow-x-auto p-3 pr-12" tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <span className="absolute top-1.5 right-1.5 rounded bg-quiet">
        <CopyButton text={text} label={label} />
      </span>
    </div>
  )
}
