import { shortcutList } from './shortcuts.ts'

/** What keys do, key by key. */
export function ShortcutList({ className = '' }: { className?: string }) {
  return (
    <dl className={`grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1.5 ${className}`}>
      {shortcutList.map(([keys, meaning]) => (
        <div key={keys} className="contents">
          <dt>
            <kbd className="rounded border border-line bg-quiet px-1.5 py-0.5">{keys}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  )
}
