"""The module ``torch.<name>``: a device module like ``torch.cuda``, derived for any plugin.

``build`` puts it together; each other module here holds one concern.

The modules of this package import torch, which the rest of devhost must not do while it is being
imported: `import torch` runs devhost. Importing torch here, before any of them starts, completes
that run first, whichever devhost module a program imports first.
"""

import torch as torch
