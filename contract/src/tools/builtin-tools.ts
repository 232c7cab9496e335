import type { builtinTools } from './tools.ts'

/** How long a program of `run_javascript` may take. */
export const javascriptTime_seconds = { usual: 10, max: 60 } as const
/** How much of a file one call of `read_file` gives. */
export const readFileLength_bytes = { usual: 65_536, max: 100_000 } as const
/** Files that one program of `run_javascript` may save. */
export const javascriptFiles = 20
/** How long a request of `http_request` may take. */
export const httpRequestTime_seconds = 60
/** How long a task may `wait`: 30 days. */
export const waitTime_seconds = 2_592_000

export const httpRequestMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
/** Those of them whose calls are `safe`; with any other the tool is `unsafe`. */
export const safeHttpMethods: ReadonlySet<string> = new Set(['GET', 'HEAD'])

interface Definition {
  /** Description for models. */
  description: string
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>
  /** What a call may change: of `http_request` it depends on the method, and this is the worst. */
  safety: 'safe' | 'keyed' | 'unsafe'
}

/** The built-in tools, as models and people see them. */
export const builtinToolDefinitions: Readonly<Record<(typeof builtinTools)[number], Definition>> = {
  http_request: {
    description:
      'Sends an HTTP request to a public address and gives the status, some headers and the body of the answer. Redirects are followed.',
    parameters: {
      type: 'object',
      properties: {
        method: { type: 'string', enum: [...httpRequestMethods], description: 'GET where nothing is said.' },
        url: { type: 'string', minLength: 1, maxLength: 8192, description: 'An absolute http or https URL.' },
        headers: {
          type: 'object',
          additionalProperties: { type: 'string', maxLength: 8192 },
          maxProperties: 64,
          description: 'Request headers by name.',
        },
        body: {
          type: ['string', 'object', 'array'],
          // OpenAI refuses an array that does not say what is in it.
          items: {},
          description: 'The body: text is sent as it is, anything else as JSON.',
        },
        timeout_seconds: {
          type: 'number',
          minimum: 1,
          maximum: httpRequestTime_seconds,
          description: `${httpRequestTime_seconds} where nothing is said.`,
        },
      },
      required: ['url'],
      additionalProperties: false,
    },
    safety: 'unsafe',
  },
  run_javascript: {
    description:
      'Runs JavaScript (ES2023) and gives the value of its last expression; with `return` or `await` at the top, what it returns. ' +
      'Also gives what was written by console.log. Promises are awaited. There are no network, files, timers or modules. ' +
      'Environment variables are in `env`. `files.read(id)` gives the bytes of a file as a Uint8Array; `files.save(name, text_or_bytes, media_type)` keeps a file as a result of the task and gives its id.',
    parameters: {
      type: 'object',
      properties: {
        code: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The program.' },
        timeout_seconds: {
          type: 'number',
          minimum: 0.1,
          maximum: javascriptTime_seconds.max,
          description: `${javascriptTime_seconds.usual} where nothing is said.`,
        },
      },
      required: ['code'],
      additionalProperties: false,
    },
    // Its one effect is files that it saves, which a repeated call does not save again.
    safety: 'safe',
  },
  read_file: {
    description:
      'Reads a text file, or a part of it, by its id. Positions are bytes; characters are never cut in two. Other files are not text and cannot be read by it.',
    parameters: {
      type: 'object',
      properties: {
        file_id: { type: 'string', minLength: 1, maxLength: 100, description: 'The file.' },
        offset: { type: 'integer', minimum: 0, description: 'The first byte; 0 where nothing is said.' },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: readFileLength_bytes.max,
          description: `Bytes at most; ${readFileLength_bytes.usual} where nothing is said.`,
        },
      },
      required: ['file_id'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
  save_file: {
    description:
      'Keeps a file as a result of the task, for people to download: text as `content`, anything else as `content_base64`. Gives its id.',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 1000, description: 'What it is called: report.csv.' },
        media_type: { type: 'string', maxLength: 200, description: 'Such as text/csv.' },
        content: { type: 'string', description: 'The text.' },
        content_base64: { type: 'string', description: 'The bytes in base64, where it is no text.' },
      },
      required: ['name'],
      additionalProperties: false,
    },
    safety: 'keyed',
  },
  current_time: {
    description: 'The current date, time and day of the week.',
    parameters: {
      type: 'object',
      properties: {
        time_zone: {
          type: 'string',
          maxLength: 64,
          description: 'An IANA time zone such as Europe/Berlin; UTC where none is given.',
        },
      },
      additionalProperties: false,
    },
    safety: 'safe',
  },
  wait: {
    description:
      'Waits before going on, from a second to 30 days. Nothing is used up meanwhile. Use it instead of asking again and again.',
    parameters: {
      type: 'object',
      properties: {
        seconds: { type: 'number', minimum: 0, maximum: waitTime_seconds, description: 'How long, in seconds.' },
      },
      required: ['seconds'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
  request_input: {
    description:
      'Asks the person in charge a question and waits for the answer, which may take long. Use it where only a person can know or decide.',
    parameters: {
      type: 'object',
      properties: { question: { type: 'string', minLength: 1, maxLength: 10_000, description: 'The question.' } },
      required: ['question'],
      additionalProperties: false,
    },
    safety: 'safe',
  },
}
