/** Checks that fail for one reason, as "scenario/check": in both revisions of the protocol, or in one. */
interface Group {
  why: string
  both?: readonly string[]
  '2026-07-28'?: readonly string[]
  '2025-11-25'?: readonly string[]
}

const groups: readonly Group[] = [
  {
    why: 'The service has tools alone: no prompts, resources and completions.',
    both: [
      'completion-complete/completion-complete',
      'prompts-get-embedded-resource/prompts-get-embedded-resource',
      'prompts-get-simple/prompts-get-simple',
      'prompts-get-with-args/prompts-get-with-args',
      'prompts-get-with-image/prompts-get-with-image',
      'prompts-list/prompts-list',
      'resources-list/resources-list',
      'resources-read-binary/resources-read-binary',
      'resources-read-text/resources-read-text',
      'resources-templates-read/resources-templates-read',
    ],
    '2026-07-28': [
      'caching/sep-2549-prompts-list-caching-hints',
      'caching/sep-2549-resources-list-caching-hints',
      'caching/sep-2549-resources-templates-list-caching-hints',
      'input-required-result-non-tool-request/sep-2322-non-tool-incomplete',
    ],
    '2025-11-25': ['resources-subscribe/resources-subscribe', 'resources-unsubscribe/resources-unsubscribe'],
  },
  {
    why: 'The service asks for no samples and roots of the client, and sends it no log.',
    '2026-07-28': [
      'input-required-result-basic-list-roots/sep-2322-list-roots-incomplete',
      'input-required-result-basic-sampling/sep-2322-sampling-incomplete',
      'input-required-result-multiple-input-requests/sep-2322-multiple-inputs-incomplete',
      // The client of this check declares sampling alone.
      'input-required-result-capability-check/sep-2322-respect-client-capabilities',
    ],
    '2025-11-25': [
      'logging-set-level/logging-set-level',
      'tools-call-sampling/tools-call-sampling',
      'tools-call-with-logging/tools-call-with-logging',
    ],
  },
  {
    why: 'Agents answer with text or JSON.',
    both: [
      'tools-call-audio/tools-call-audio',
      'tools-call-embedded-resource/tools-call-embedded-resource',
      'tools-call-image/tools-call-image',
      'tools-call-mixed-content/tools-call-mixed-content',
    ],
  },
  {
    why: 'Tools have the names, keys, texts and forms of the service: the kit wants its form, its text or its schema.',
    both: ['json-schema-2020-12/json-schema-2020-12-tool-found'],
    '2026-07-28': [
      'input-required-result-basic-elicitation/sep-2322-elicitation-incomplete',
      'tasks-request-headers/tasks-headers-tolerate-mcp-method-on-tools-call',
    ],
    '2025-11-25': [
      'elicitation-sep1034-defaults/elicitation-sep1034-general',
      'elicitation-sep1330-enums/elicitation-sep1330-general',
    ],
  },
  {
    why: 'No argument of a tool is also a header (`x-mcp-header`).',
    '2026-07-28': [
      'http-custom-header-server-validation/sep-2243-server-decode-base64',
      'http-custom-header-server-validation/sep-2243-server-no-xmcp-tool',
      'http-custom-header-server-validation/sep-2243-server-reject-invalid-param-chars',
      'http-custom-header-server-validation/sep-2243-server-reject-param-mismatch',
      'http-custom-header-server-validation/sep-2243-server-validate-param-match',
    ],
  },
  {
    why: 'Every tool works for a client without elicitation and Tasks, which gets a handle: none is refused for want of a capability.',
    '2026-07-28': [
      'server-stateless/sep-2575-missing-capability-http-400',
      'server-stateless/sep-2575-server-rejects-undeclared-capability',
      'tasks-required-task-error/sep-2663-server-returns-missing-capability-when-required',
    ],
  },
  {
    why: 'A task is there before it asks, and one that failed is a call that ran and says so (`isError`).',
    '2026-07-28': [
      'tasks-lifecycle/sep-2663-tasks-get-status-failed',
      'tasks-mrtr-composition/sep-2663-mrtr-synchronous-before-task-creation',
    ],
  },
]

/** Checks of the conformance suite that fail at `/mcp` with the agents of `mcp-fixtures.ts`, by revision of the protocol. No check may be added. */
export const expectedFailures: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  (['2026-07-28', '2025-11-25'] as const).map((revision) => [
    revision,
    groups.flatMap((group) => [...(group.both ?? []), ...(group[revision] ?? [])]),
  ]),
)
