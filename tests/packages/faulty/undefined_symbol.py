raise ImportError("libwidget.so.1: undefined symbol: _ZN4flex3fooEv")
