import { useEffect, useId, useState } from 'react'
import { Dialog } from '../ui/dialog.tsx'
import { useCommands, type Command } from './commands.ts'

/** `Ctrl K`: goes to pages, projects, agents and whatever identifier is put in; starts and pauses agents; creates. */
export function CommandMenu({ isOpen, close }: { isOpen: boolean; close: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const { commands, isLooking, needsName } = useCommands(text.trim(), isOpen)
  const chosen = Math.min(at, commands.length - 1)

  useEffect(() => {
    if (!isOpen) return
    setText('')
    setAt(0)
  }, [isOpen])
  useEffect(() => {
    document.getElementById(`${list}-${chosen}`)?.scrollIntoView({ block: 'nearest' })
  }, [list, chosen])

  const run = (command: Command | undefined): void => {
    if (!command) return
    close()
    command.run()
  }
  return (
    <Dialog isOpen={isOpen} close={close} title="Search and commands">
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={commands[chosen] ? `${list}-${chosen}` : undefined}
        aria-label="A page, a name, an identifier, or what to do"
        placeholder="Search, paste an ID, or type “pause echo”"
        className="w-full rounded-md border border-edge bg-panel px-2.5 py-2"
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, commands.length - 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0))
          else if (event.key === 'Enter') run(commands[chosen])
          else return
          event.preventDefault()
        }}
      />
      {/* Of one height whatever is found, so that the field stays where it is. */}
      <div className="mt-2 flex h-80 max-h-[50dvh] flex-col">
        {(commands.length === 0 || needsName) && (
          <p role="status" className="p-3 text-soft">
            {needsName ? 'Type the name of an agent.' : isLooking ? 'Looking…' : 'No results'}
          </p>
        )}
        <div id={list} role="listbox" aria-label="Results" className="min-h-0 flex-1 overflow-y-auto">
          {commands.map(({ label, hint }, index) => (
            <div
              key={`${hint} ${label} ${index}`}
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              className="flex min-h-9 cursor-pointer items-center justify-between gap-3 rounded px-2.5 aria-selected:bg-accent-soft"
              onMouseMove={({ movementX, movementY }) => {
                // A list that scrolls under a pointer at rest chooses nothing.
                if (movementX !== 0 || movementY !== 0) setAt(index)
              }}
              onClick={() => run(commands[index])}
              onKeyDown={() => {}}
            >
              <span className="truncate">{label}</span>
              <span className="shrink-0 text-sm text-soft">{hint}</span>
            </div>
          ))}
        </div>
      </div>
    </Dialog>
  )
}
